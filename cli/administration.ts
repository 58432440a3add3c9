import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type MigrateOptions, migrate } from "../api-server/db/migrate.ts";
import { createRelayWaker } from "../api-server/db/relay-waker.ts";
import { findWorkspace, type WorkspaceRow } from "../api-server/db/workspaces.ts";
import type { Administrator } from "../api-server/domain/administration/administrator.ts";
import { ensureWorkspace } from "../api-server/domain/administration/bootstrap.ts";
import { DEFAULT_WORKSPACE } from "../core/workspaces/workspace.ts";
import { isDatabaseUnavailable } from "../postgres/failures.ts";
import { createPool } from "../postgres/pool.ts";
import { UsageError } from "./command.ts";
import { findRunningDev } from "./dev-state.ts";

/*
 * Helpers for commands that change the database directly because the API has no procedure for the change. Row triggers write these changes
 * to the outbox, so running services see them like all other changes.
 */

export interface DatabaseOptions {
  readonly "database-url": string | undefined;
  readonly "database-url-file": string | undefined;
  readonly "data-dir": string;
  /** Maximum time to wait for an unavailable database. Default: no wait. */
  readonly waitMs?: number;
}

export interface WorkspaceOptions extends DatabaseOptions {
  readonly workspace: string | undefined;
}

/**
 * Runs `work` with a connection to the database in DATABASE_URL or, if the variable is unset, to the database of the `postern dev` that
 * runs on `--data-dir`. Migrates the database to this version's schema first, and closes the connection afterwards.
 */
export async function withDatabase<T>(
  options: DatabaseOptions,
  work: (administrator: Administrator) => Promise<T>,
): Promise<T> {
  const url = readAddress(options) ?? findRunningDev(options["data-dir"])?.databaseUrl;
  if (url === undefined) {
    throw new UsageError(`no \`postern dev\` runs on ${options["data-dir"]}; start one, or set DATABASE_URL`);
  }
  await migrateReachable(url, { waitMs: options.waitMs ?? 0 });
  const db = createPool(url, { applicationName: "postern-cli" });
  try {
    // There are no cache entries to invalidate, because a command has no record cache.
    const projection = { drop: () => undefined, forgetAll: () => undefined };
    return await work({
      db,
      projection,
      wakeRelay: createRelayWaker(db),
      actor: actor(),
      nowMs: Date.now,
      randomBytes,
    });
  } finally {
    await db.end();
  }
}

/**
 * Like `withDatabase`, but also passes `work` the workspace of `--workspace`, or the default workspace. Throws if no workspace has this id
 * or name.
 */
export async function withWorkspace<T>(
  options: WorkspaceOptions,
  work: (administrator: Administrator, workspace: WorkspaceRow) => Promise<T>,
): Promise<T> {
  return withDatabase(options, async (administrator) => {
    const { db } = administrator;
    const named = options.workspace ?? (await ensureWorkspace(db, DEFAULT_WORKSPACE));
    const workspace = await findWorkspace(db, { workspace: named });
    if (workspace === undefined) {
      throw new Error(`there is no workspace ${named}; \`postern workspace list\` lists them`);
    }
    return work(administrator, workspace);
  });
}

/** Returns the database URL from the option or its file; `undefined` if neither is set. */
export const readAddress = ({
  "database-url": url,
  "database-url-file": file,
}: Pick<DatabaseOptions, "database-url" | "database-url-file">): string | undefined =>
  url ?? (file === undefined ? undefined : readFileSync(file, "utf8").trim());

const AGAIN_MS = 1000;

/** Migrates the database to this version's schema. Throws if the database is unavailable for longer than `waitMs`. */
export async function migrateReachable(
  url: string,
  { waitMs, ...told }: { waitMs: number } & Pick<MigrateOptions, "onBlocked" | "onMigration">,
): Promise<void> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    try {
      return await migrate(url, told);
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      if (performance.now() + AGAIN_MS > deadline) {
        throw new Error("the database is unavailable; check DATABASE_URL and --data-dir", { cause: error });
      }
    }
    await sleep(AGAIN_MS);
  }
}

/** Returns the error for an id that does not exist in the workspace. */
export const notFound = (what: string, workspace: WorkspaceRow, list: string): Error =>
  new Error(`there is no ${what} in workspace ${workspace.name}; \`postern ${list}\` lists them`);

/** Returns the actor for the audit log: the user and host name, because the database does not know which person runs the command. */
function actor(): Administrator["actor"] {
  return { type: "cli", id: "cli", name: `${userName()}@${hostname()}` };
}

/** Returns the user name, or the user id if it has no name, as in some containers. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
