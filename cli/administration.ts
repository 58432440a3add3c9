import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Administrator } from "../api-server/domain/administration/administrator.ts";
import { ensureWorkspace } from "../api-server/domain/administration/bootstrap.ts";
import { isDatabaseUnavailable } from "../api-server/store/failures.ts";
import { type MigrateOptions, migrate } from "../api-server/store/migrate.ts";
import { createPool } from "../api-server/store/pool.ts";
import { createRelayWaker } from "../api-server/store/relay-waker.ts";
import { findWorkspace, type WorkspaceRow } from "../api-server/store/workspaces.ts";
import { DEFAULT_WORKSPACE } from "../core/workspaces/workspace-name.ts";
import { UsageError } from "./command.ts";
import { findRunningDev } from "./dev-state.ts";

/*
 * Commands for things that the API has no procedures for work directly on the database. The running system learns of their changes as
 * of all others: from the marks that the row triggers write.
 */

export interface DatabaseOptions {
  readonly "database-url": string | undefined;
  readonly "database-url-file": string | undefined;
  readonly "data-dir": string;
  /** How long to try again while the database does not answer; not at all when left out. */
  readonly waitMs?: number;
}

export interface WorkspaceOptions extends DatabaseOptions {
  readonly workspace: string | undefined;
}

/**
 * Connects to the database of DATABASE_URL, or of the `postern dev` that runs on `--data-dir`, and migrates it to this version's schema;
 * closes it when the work is done.
 */
export async function withDatabase<T>(
  options: DatabaseOptions,
  work: (administrator: Administrator) => Promise<T>,
): Promise<T> {
  const url = readAddress(options) ?? findRunningDev(options["data-dir"])?.databaseUrl;
  if (url === undefined) {
    throw new UsageError(`no \`postern dev\` runs on ${options["data-dir"]}: start it, or set DATABASE_URL`);
  }
  await migrateReachable(url, { waitMs: options.waitMs ?? 0 });
  const db = createPool(url, { applicationName: "postern-cli" });
  try {
    // A command caches no records, so it has nothing to drop after a change.
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

/** The same with the workspace of `--workspace`, or the default one. Throws when no workspace has that id or name. */
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

/** The address that was given, by itself or in a file; undefined when it was not. */
export const readAddress = ({
  "database-url": url,
  "database-url-file": file,
}: Pick<DatabaseOptions, "database-url" | "database-url-file">): string | undefined =>
  url ?? (file === undefined ? undefined : readFileSync(file, "utf8").trim());

const AGAIN_MS = 1000;

/**
 * Migrates the database to this version's schema, when it answers within `waitMs`. Throws an error that says so when it does not.
 */
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
        throw new Error("the database cannot be reached, look at DATABASE_URL and --data-dir", { cause: error });
      }
    }
    await sleep(AGAIN_MS);
  }
}

/** The error of a command for an id that does not exist in the workspace. */
export const notFound = (what: string, workspace: WorkspaceRow, list: string): Error =>
  new Error(`there is no ${what} in workspace ${workspace.name}; \`postern ${list}\` lists them`);

/** The database cannot know which person runs the command, so the audit log gets the user and host name. */
function actor(): Administrator["actor"] {
  return { type: "cli", id: "cli", name: `${userName()}@${hostname()}` };
}

/** In a container the process may run under a user id without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
