import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { failureCode } from "./failures.ts";
import { type IndexStep, listMigrations, type Migration } from "./migration-files.ts";

/*
 * Brings the database up to date while other replicas serve from it.
 *
 * A lock that waits makes everything after it wait: `alter table keys` behind somebody's report of an hour would stop every
 * verification for that hour. So a migration waits for its locks in short tries, and gives the traffic room between them.
 * Indexes on tables that exist are made concurrently, which no transaction may hold: see CONTRIBUTING.md.
 */

/** Any number that no other advisory lock of ours uses: two replicas that start at once migrate one after the other. */
export const MIGRATION_LOCK = 7_061_001;

/** Between two looks whether the other process has finished migrating. */
const TURN_LOOK_MS = 200;
const LOCK_TRY_MS = 500;
/** Longer than Postgres's `deadlock_timeout` (1 s), after which it ends an autovacuum that stands in the way. */
const LONG_LOCK_TRY_MS = 1_500;
const LONG_TRY_EVERY = 5;
const PAUSE_MS = 2_000;
const LOCK_WAIT_MS_MAX = 600_000;

/** What a lock that was not had in time fails with, and what lost against another transaction. */
const TRY_AGAIN: ReadonlySet<string> = new Set(["55P03", "40P01"]);

export interface MigrateOptions {
  /** Where the numbered files are; this release's own when left out. */
  readonly folder?: string;
  /** How long one migration tries to get its locks before this fails; 10 minutes when left out. */
  readonly lockWaitMsMax?: number;
  /** Called after each try that did not get its locks. */
  readonly onBlocked?: (blocked: { readonly fileName: string; readonly attempt: number }) => void;
}

/**
 * Applies the numbered migrations that the database has not seen yet, in order, and remembers each: a plain file in one
 * transaction with the row that remembers it, a `….concurrently.sql` statement by statement, skipping what an interrupted run
 * has done. Safe to call from several processes at once. Throws what a migration fails with, also when its locks were not had
 * within `lockWaitMsMax`.
 */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<void> {
  const migrations = await listMigrations(options.folder);
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: "postern-migrate",
    keepAlive: true,
  });
  // A connection that is lost fails the statement under way, or the next one; unheard, it would end the process besides.
  client.on("error", () => undefined);
  try {
    await client.connect();
    // The database's own defaults may be shorter than the making of an index takes.
    await client.query("set statement_timeout = 0; set lock_timeout = 0");
    await untilOurTurn(client);
    await client.query(`create table if not exists schema_migrations (
      version    integer primary key,
      file_name  text not null,
      applied_at timestamptz not null default now()
    )`);
    const { rows } = await client.query<{ version: number }>("select version from schema_migrations");
    const applied = new Set(rows.map((row) => row.version));
    for (const migration of migrations) {
      if (!applied.has(migration.version)) await apply(client, migration, options);
    }
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Held by the session, so that it spans the transactions and ends with the connection, whatever happens. It is asked for again
 * and again, because a statement that waits would hold a snapshot, which an index that is made concurrently waits for.
 */
async function untilOurTurn(client: pg.Client): Promise<void> {
  for (;;) {
    const text = "select pg_try_advisory_lock($1) as taken";
    const { rows } = await client.query<{ taken: boolean }>(text, [MIGRATION_LOCK]);
    if (rows[0]?.taken === true) return;
    await sleep(TURN_LOOK_MS * (0.5 + Math.random()));
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
    // Over a lost connection it fails as well, and says less than what came before.
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}

/**
 * Reads and writes of the table go on meanwhile, so that it may wait for long transactions as long as they take. An index that
 * is there but not valid is what an interrupted run left: nobody reads by it, but every write still pays for it.
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

/** Who may be in the way: the three longest transactions in this database. */
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
