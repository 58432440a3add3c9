import { randomBytes } from "node:crypto";
import { hostname, userInfo } from "node:os";
import type { Administrator } from "../api-server/domain/administration/administrator.ts";
import { DEFAULT_WORKSPACE, ensureWorkspace } from "../api-server/domain/bootstrap.ts";
import { isDatabaseUnavailable } from "../api-server/store/failures.ts";
import { migrate } from "../api-server/store/migrate.ts";
import { createPool } from "../api-server/store/pool.ts";
import { createRelayWaker } from "../api-server/store/relay-waker.ts";
import { findWorkspace, type WorkspaceRow } from "../api-server/store/workspaces.ts";
import { UsageError } from "./command.ts";
import { findRunningDev } from "./dev-state.ts";

/*
 * The commands for what the API has no procedures for work on the database itself. The running system hears of what they change
 * as of everything else: from the marks that the row triggers leave.
 */

export interface DatabaseOptions {
  readonly "database-url": string | undefined;
  readonly data: string;
}

export interface WorkspaceOptions extends DatabaseOptions {
  readonly workspace: string | undefined;
}

/**
 * The database of DATABASE_URL, or of the `postern dev` that runs on `--data`, brought to this version's schema; closed when the
 * work is done.
 */
export async function withDatabase<T>(
  options: DatabaseOptions,
  work: (administrator: Administrator) => Promise<T>,
): Promise<T> {
  const url = options["database-url"] ?? findRunningDev(options.data)?.databaseUrl;
  if (url === undefined) {
    throw new UsageError(`no \`postern dev\` runs on ${options.data}: start it, or set DATABASE_URL`);
  }
  await migrateReachable(url);
  const db = createPool(url, { applicationName: "postern-cli" });
  try {
    // A command remembers no records, so that there is nothing to forget when it has changed one.
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

/** The same with the workspace of `--workspace`, or the default one. Throws when there is none of that id or name. */
export async function withWorkspace<T>(
  options: WorkspaceOptions,
  work: (administrator: Administrator, workspace: WorkspaceRow) => Promise<T>,
): Promise<T> {
  return withDatabase(options, async (administrator) => {
    const { db } = administrator;
    const named = options.workspace ?? (await ensureWorkspace(db, DEFAULT_WORKSPACE));
    const workspace = await findWorkspace(db, { workspace: named });
    if (workspace === undefined) {
      throw new Error(`there is no workspace ${named}; \`postern workspace list\` shows those that there are`);
    }
    return work(administrator, workspace);
  });
}

async function migrateReachable(url: string): Promise<void> {
  try {
    await migrate(url);
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    throw new Error("the database cannot be reached, look at DATABASE_URL and --data", { cause: error });
  }
}

/** What a command throws for an id that the workspace does not have. */
export const notFound = (what: string, workspace: WorkspaceRow, list: string): Error =>
  new Error(`there is no ${what} in workspace ${workspace.name}; \`postern ${list}\` shows those that there are`);

/** The database cannot know which person this is, so the log says what the machine says. */
function actor(): Administrator["actor"] {
  return { type: "cli", id: "cli", name: `${userName()}@${hostname()}` };
}

/** In a container the process may run under a number that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
