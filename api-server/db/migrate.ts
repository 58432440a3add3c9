import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { failureCode } from "../../postgres/failures.ts";
import { type DatabaseUrl, urlOf } from "../../postgres/pool.ts";
import { type IndexStep, listMigrations, type Migration } from "./migration-files.ts";

/*
 * Migrates the database while other replicas serve from it.
 *
 * A statement that waits for a lock blocks all later ones: `alter table keys` behind a one-hour report would stop every verification for
 * that hour. A migration therefore tries to acquire its locks in short attempts, and lets traffic continue in between. Indexes on existing
 * tables are created concurrently, which is not possible in a transaction: see CONTRIBUTING.md.
 */

/** Advisory lock, distinct from all others. It makes replicas that start concurrently migrate one at a time. */
export const MIGRATION_LOCK = 7_061_001;

/** Connect timeout. Without it, an attempt to connect to an unreachable host would never fail. */
const CONNECT_MS_MAX = 5_000;
/** Interval at which to check whether another process has finished migrating. */
const TURN_POLL_MS = 200;
const LOCK_TRY_MS = 500;
/**
 * Lock timeout of a long attempt. It exceeds Postgres's `deadlock_timeout` (1 s), because Postgres cancels a blocking autovacuum only after
 * that time.
 */
const LONG_LOCK_TRY_MS = 1_500;
const LONG_TRY_EVERY = 5;
const PAUSE_MS = 2_000;
const LOCK_WAIT_MS_MAX = 600_000;

/** SQLSTATEs of a lock timeout and of a deadlock, after which a migration is attempted again. */
const TRY_AGAIN: ReadonlySet<string> = new Set(["55P03", "40P01"]);

export interface MigrateOptions {
  /** Folder of the migrations. Default: the folder of this release. */
  readonly folder?: string;
  /** Maximum time to acquire the locks of one migration, ms. Default: 10 minutes. */
  readonly lockWaitMsMax?: number;
  /** Called after each attempt that failed to acquire its locks. */
  readonly onBlocked?: (blocked: { readonly fileName: string; readonly attempt: number }) => void;
  /**
   * Called before each migration. `done` is the number of migrations that this run has already applied, and `total` is the number that it
   * applies in all.
   */
  readonly onMigration?: (now: { readonly fileName: string; readonly done: number; readonly total: number }) => void;
}

/**
 * Applies pending numbered migrations in order, and records each one. A plain file is applied and recorded in one transaction. A file
 * `….concurrently.sql` runs statement by statement, and skips statements that an interrupted run has completed. Several processes can call
 * this concurrently. Throws if a migration fails or cannot acquire its locks within `lockWaitMsMax`.
 */
export async function migrate(databaseUrl: DatabaseUrl, options: MigrateOptions = {}): Promise<void> {
  const migrations = await listMigrations(options.folder);
  await withClient(databaseUrl, async (client) => {
    // If no migrations are pending, returns before the first statement that requires the privilege to create tables.
    if ((await findPending(client, migrations)).length === 0) return;
    // Disables timeouts, because creating an index may take longer than the database's default timeouts allow.
    await client.query("set statement_timeout = 0; set lock_timeout = 0");
    await untilOurTurn(client);
    await client.query(`create table if not exists schema_migrations (
      version    integer primary key,
      file_name  text not null,
      applied_at timestamptz not null default now()
    )`);
    const pending = await findPending(client, migrations);
    for (const [done, migration] of pending.entries()) {
      options.onMigration?.({ fileName: migration.fileName, done, total: pending.length });
      await apply(client, migration, options);
    }
  });
}

/** Thrown if the database lacks migrations of this release; another process must apply them. */
export class SchemaBehind extends Error {
  override name = "SchemaBehind";
}

/** Throws `SchemaBehind` if migrations of this release are pending. Changes nothing, and takes no lock. */
export async function demandMigrated(databaseUrl: DatabaseUrl): Promise<void> {
  const migrations = await listMigrations();
  await withClient(databaseUrl, async (client) => {
    const [first] = await findPending(client, migrations);
    if (first !== undefined) throw new SchemaBehind(`the database lacks the migration ${first.fileName}`);
  });
}

async function withClient(databaseUrl: DatabaseUrl, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({
    connectionString: urlOf(databaseUrl),
    application_name: "postern-migrate",
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS_MAX,
  });
  // Without this listener, a lost connection would end the process. The loss is still noticed, because the current or next statement fails.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Returns the pending migrations, in order. */
async function findPending(client: pg.Client, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  const table = await client.query<{ found: boolean }>("select to_regclass('schema_migrations') is not null as found");
  if (table.rows[0]?.found !== true) return migrations;
  const { rows } = await client.query<{ version: number }>("select version from schema_migrations");
  const applied = new Set(rows.map((row) => row.version));
  return migrations.filter(({ version }) => !applied.has(version));
}

/**
 * Waits for the migration lock. The lock belongs to the session, so it spans several transactions, and is released when the connection
 * closes, if not before. The lock is polled, because a waiting statement would hold a snapshot, and concurrent index creation waits for
 * snapshots.
 */
async function untilOurTurn(client: pg.Client): Promise<void> {
  for (;;) {
    const text = "select pg_try_advisory_lock($1) as taken";
    const { rows } = await client.query<{ taken: boolean }>(text, [MIGRATION_LOCK]);
    if (rows[0]?.taken === true) return;
    await sleep(TURN_POLL_MS * (0.5 + Math.random()));
  }
}

async function apply(client: pg.Client, migration: Migration, options: MigrateOptions): Promise<void> {
  const { fileName, indexSteps } = migration;
  try {
    if (indexSteps === undefined) await applyInTries(client, migration, options);
    else {
      for (const step of indexSteps) await applyIndexStep(client, step);
      await remember(client, migration);
    }
  } catch (error) {
    throw new Error(`migration ${fileName}`, { cause: error });
  }
}

async function applyInTries(
  client: pg.Client,
  migration: Migration,
  { lockWaitMsMax = LOCK_WAIT_MS_MAX, onBlocked }: MigrateOptions,
): Promise<void> {
  const giveUpAt = performance.now() + lockWaitMsMax;
  for (let attempt = 1; ; attempt++) {
    try {
      await applyInTransaction(client, migration, lockTryMs(attempt));
      return;
    } catch (error) {
      if (!TRY_AGAIN.has(failureCode(error) ?? "")) throw error;
      if (performance.now() >= giveUpAt) {
        throw new Error(`no lock within ${lockWaitMsMax / 1000} s, ${await describeHolders(client)}`, { cause: error });
      }
      onBlocked?.({ fileName: migration.fileName, attempt });
      await sleep(PAUSE_MS * (0.5 + Math.random()));
    }
  }
}

const lockTryMs = (attempt: number): number => (attempt % LONG_TRY_EVERY === 0 ? LONG_LOCK_TRY_MS : LOCK_TRY_MS);

async function applyInTransaction(client: pg.Client, migration: Migration, lockTimeoutMs: number): Promise<void> {
  await client.query("begin");
  try {
    await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
    await client.query(migration.sql);
    await remember(client, migration);
    await client.query("commit");
  } catch (error) {
    // Ignores the error of the rollback, because the original error is more useful, for example after a lost connection.
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}

/**
 * Creates or drops an index. The statement can wait for long transactions indefinitely, because reads and writes of the table continue
 * meanwhile. Replaces an invalid index that an interrupted run left: no query uses such an index, but every write still maintains it.
 */
async function applyIndexStep(client: pg.Client, { kind, index, text }: IndexStep): Promise<void> {
  const found = await findIndex(client, index);
  if (kind === "create" && found?.valid === true) return;
  if (found !== undefined) await client.query(`drop index concurrently ${index}`);
  if (kind === "create") await client.query(text);
}

async function findIndex(client: pg.Client, index: string): Promise<{ valid: boolean } | undefined> {
  const text = "select indisvalid as valid from pg_index where indexrelid = to_regclass($1)";
  return (await client.query<{ valid: boolean }>(text, [index])).rows[0];
}

async function remember(client: pg.Client, { version, fileName }: Migration): Promise<void> {
  await client.query("insert into schema_migrations (version, file_name) values ($1, $2)", [version, fileName]);
}

/** Describes possible blockers: the three longest transactions in this database. */
async function describeHolders(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ pid: number; name: string; seconds: number }>(
    `select a.pid, a.application_name as name, extract(epoch from now() - a.xact_start)::integer as seconds
       from pg_stat_activity a
      where a.datname = current_database() and a.xact_start is not null and a.pid <> pg_backend_pid()
      order by a.xact_start
      limit 3`,
  );
  const holders = rows.map(({ pid, name, seconds }) => `${pid} (${name || "unnamed"}, ${seconds} s)`);
  return holders.length === 0 ? "and no long transaction is open" : `the longest transactions: ${holders.join(", ")}`;
}
