import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { migrate } from "./migrate.ts";

/*
 * What a migration may not do to a table that other replicas read and write meanwhile (CONTRIBUTING.md, "Add a migration"). Postgres
 * itself reports what each migration did, by event triggers, so that statements in `do` blocks and functions are included.
 */

/** These have so few rows that the time does not matter. */
const SMALL_TABLES = ["settings", "workspaces", "schema_migrations"];

/** A table that the migration itself created is not used by others yet. */
const WATCH = `
  create table what_migrations_did (at timestamptz, fault text);
  create table made_now (tx xid8, relation oid);
  create table known_indexes as select indexrelid as index from pg_index;
  create function is_free(oid) returns boolean language sql as $$
    select exists (select from made_now where tx = pg_current_xact_id() and relation = $1)
        or (select relkind = 't' or relname = any ('{${SMALL_TABLES}}') from pg_class where oid = $1)
  $$;
  create function watch_commands() returns event_trigger language plpgsql as $$
  begin
    insert into made_now
      select pg_current_xact_id(), d.objid
        from pg_event_trigger_ddl_commands() d
       where d.object_type = 'table' and tg_tag like 'CREATE%';
    insert into what_migrations_did
      select now(), format('makes index %s on %s, which stops its writes', x.indexrelid::regclass, x.indrelid::regclass)
        from pg_index x
       where x.indexrelid not in (select index from known_indexes)
         and not is_free(x.indrelid) and current_query() !~* 'index\\s+concurrently';
    insert into known_indexes select indexrelid from pg_index where indexrelid not in (select index from known_indexes);
  end $$;
  create function watch_rewrites() returns event_trigger language plpgsql as $$
  begin
    insert into what_migrations_did
      select now(), format('rewrites %s, which stops its reads', relation::regclass)
        from pg_event_trigger_table_rewrite_oid() as relation
       where not is_free(relation);
  end $$;
  create event trigger watch_commands on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'CREATE INDEX', 'ALTER TABLE')
    execute function watch_commands();
  create event trigger watch_rewrites on table_rewrite execute function watch_rewrites();`;

/** Returns the violations of the rules by migrations of the folder (this release's when left out), with their file names. */
async function problemsOf({ url }: TestDatabase, folder?: string): Promise<string[]> {
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  try {
    await db.query(WATCH);
    await migrate(url, folder === undefined ? {} : { folder });
    // A transaction has one \`now()\`, which is recorded with its migration too.
    const text = `select m.file_name || ': ' || w.fault as fault
                    from what_migrations_did w left join schema_migrations m on m.applied_at = w.at
                   order by fault`;
    const { rows } = await db.query<{ fault: string }>(text);
    return rows.map(({ fault }) => fault);
  } finally {
    await db.end();
  }
}

async function watched(database: Promise<TestDatabase>): Promise<TestDatabase> {
  const made = await database;
  onTestFinished(() => made.drop());
  return made;
}

test("no migration of this version blocks traffic to an existing table", async () => {
  expect(await problemsOf(await watched(createEmptyDatabase()))).toEqual([]);
});

test("blocking statement is detected anywhere in a migration", async () => {
  const folder = await mkdtemp(join(tmpdir(), "postern-migrations-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const files: Record<string, string> = {
    "9001-plain.sql": "alter table keys add column also text; create index probe_plain on keys (start)",
    "9002-hidden.sql": "do $$ begin execute 'create index probe_hidden on roles (created_at)'; end $$",
    "9003-constraint.sql": "alter table permissions add constraint probe_constraint unique (id, name)",
    "9004-rewrite.sql": "alter table identities alter column created_at type numeric",
    "9005-good.sql": "create table probe (id text primary key, at bigint); create index probe_at on probe (at)",
    "9006-good.concurrently.sql": "create index concurrently probe_good on keys (created_at)",
    "9007-good.sql": "alter table keys add column probe bigint not null default 5",
    "9008-small.sql": "create index probe_small on workspaces (created_at)",
  };
  await Promise.all(Object.entries(files).map(([name, sql]) => writeFile(join(folder, name), sql)));
  expect(await problemsOf(await watched(createTestDatabase()), folder)).toEqual([
    "9001-plain.sql: makes index probe_plain on keys, which stops its writes",
    "9002-hidden.sql: makes index probe_hidden on roles, which stops its writes",
    "9003-constraint.sql: makes index probe_constraint on permissions, which stops its writes",
    "9004-rewrite.sql: rewrites identities, which stops its reads",
  ]);
});
