import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../../test/harness/postgres.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { migrate } from "./migrate.ts";

/* Migrations while the database is in use: real sessions hold conflicting locks. */

/** A migrated database with two keys, and a function that opens connections to it; all are closed when the test ends. */
async function openDatabase() {
  const database = await createTestDatabase();
  const clients: pg.Client[] = [];
  onTestFinished(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await database.drop();
  });
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: database.url });
    client.on("error", () => undefined);
    clients.push(client);
    await client.connect();
    return client;
  };
  const db = await connect();
  await db.query(`insert into workspaces (id, name, created_at) values ('ws_b', 'b', 1), ('ws_a', 'a', 2);
                  insert into apis (id, workspace_id, name, key_space_id, created_at)
                    values ('api_2', 'ws_a', 'orders', 'ks_1', 1), ('api_1', 'ws_b', 'orders', 'ks_2', 2);
                  insert into keys (id, workspace_id, api_id, hash, start, created_at)
                    values ('key_z', 'ws_a', 'api_2', 'hash_1', 'z', 1), ('key_a', 'ws_b', 'api_1', 'hash_2', 'a', 2)`);
  return { url: database.url, db, connect };
}

/** A folder of migrations, by file name, of which the database has applied none. */
async function folderOf(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "postern-migrations-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await Promise.all(Object.entries(files).map(([name, sql]) => writeFile(join(folder, name), sql)));
  return folder;
}

async function indexes(db: pg.Client, name: string): Promise<Array<{ valid: boolean }>> {
  const text = `select x.indisvalid as valid
                  from pg_index x join pg_class c on c.oid = x.indexrelid
                 where c.relname = $1`;
  return (await db.query<{ valid: boolean }>(text, [name])).rows;
}

/** The id of the session that creates an index and waits for another transaction to end. */
async function waitingMigration(db: pg.Client): Promise<number> {
  const text = `select a.pid
                  from pg_stat_activity a
                 where a.datname = current_database() and a.application_name = 'postern-migrate'
                   and a.wait_event_type = 'Lock' and a.query like '%index concurrently%'`;
  return waitFor("the migration to wait", async () => (await db.query<{ pid: number }>(text)).rows[0]?.pid);
}

test("later migrations can change non-empty tables of the initial schema", async () => {
  const { url, db } = await openDatabase();
  const folder = await folderOf({
    "9001-regions.sql": `alter table keys add column region text not null default 'eu';
                         create table regions (id text primary key);
                         insert into regions select distinct region from keys`,
    "9002-regions.concurrently.sql": "create index concurrently keys_by_region on keys (workspace_id, region, id)",
  });
  await migrate(url, { folder });
  const { rows } = await db.query(
    "select k.id, r.id as region from keys k join regions r on r.id = k.region order by k.id",
  );
  expect(rows).toEqual([
    { id: "key_a", region: "eu" },
    { id: "key_z", region: "eu" },
  ]);
  // The triggers of the initial schema still run on the changed table.
  await db.query("delete from outbox; update keys set enabled = false where id = 'key_a'");
  expect((await db.query("select kind, id from outbox")).rows).toEqual([{ kind: "keyId", id: "key_a" }]);
});

test("blocked migration retries with short waits, so traffic continues", async () => {
  const { url, db, connect } = await openDatabase();
  const folder = await folderOf({ "9001-a-column.sql": "alter table keys add column probe text" });
  const long = await connect();
  await long.query("begin; select from keys");
  let tries = 0;
  let isDone = false;
  const migrating = migrate(url, { folder, onBlocked: () => void tries++ }).then(() => {
    isDone = true;
  });
  let answered = 0;
  const traffic = async (id: string): Promise<void> => {
    const client = await connect();
    while (!isDone) {
      await client.query("update keys set last_used_at = $2 where id = $1", [id, answered]);
      await client.query("select from keys where id = $1", [id]);
      answered += 1;
      await new Promise((done) => setTimeout(done, 10));
    }
  };
  const clients = Promise.all([traffic("key_z"), traffic("key_a")]);
  for (let round = 1; round <= 2; round++) {
    await waitFor("another try", () => tries >= round);
    const before = answered;
    await waitFor("traffic while the lock is not to be had", () => answered > before + 10);
  }
  expect(isDone).toBe(false);
  await long.query("commit");
  await migrating;
  await clients;
  expect((await db.query("select probe from keys")).rowCount).toBe(2);
});

test("blocked migration times out, reports the blocking transactions and rolls back", async () => {
  const { url, db, connect } = await openDatabase();
  const folder = await folderOf({
    "9001-a-table.sql": "create table made_before (id text); alter table keys add column probe text",
  });
  const long = await connect();
  await long.query("set application_name = 'report'; begin; select from keys");
  const failure = await migrate(url, { folder, lockWaitMsMax: 100 }).catch((error: Error) => error);
  expect(failure).toMatchObject({ message: "migration 9001-a-table.sql", cause: { message: /\(report, \d+ s\)/ } });
  expect((await db.query("select to_regclass('made_before') as found")).rows).toEqual([{ found: null }]);
  expect((await db.query("select from schema_migrations where version = 9001")).rowCount).toBe(0);
});

test("migration creates an index concurrently and recreates an invalid one", async () => {
  const { url, db, connect } = await openDatabase();
  const sql = `-- The first is there already when it is begun again.
               create index concurrently probe_first on keys (start);
               create unique index concurrently probe_second on keys (hash, id) where deleted_at is null`;
  const folder = await folderOf({ "9001-probes.concurrently.sql": sql });
  const writing = await connect();
  await writing.query("create index probe_first on keys (start)");
  await writing.query("begin; update keys set last_used_at = 5 where id = 'key_z'");
  const interrupted = expect(migrate(url, { folder })).rejects.toThrow("9001-probes.concurrently.sql");
  const pid = await waitingMigration(db);
  await db.query("update keys set last_used_at = 6 where id = 'key_a'");
  await db.query("select pg_terminate_backend($1)", [pid]);
  await interrupted;
  expect(await indexes(db, "probe_second")).toEqual([{ valid: false }]);

  const again = migrate(url, { folder });
  await waitingMigration(db);
  await writing.query("commit");
  await again;
  expect(await indexes(db, "probe_second")).toEqual([{ valid: true }]);
  expect(await indexes(db, "probe_first")).toEqual([{ valid: true }]);
  await migrate(url, { folder });
  expect((await db.query("select from schema_migrations where version = 9001")).rowCount).toBe(1);
});

test("migration drops an index concurrently and accepts a missing one", async () => {
  const { url, db } = await openDatabase();
  await db.query("create index probe on keys (start)");
  const sql = "drop index concurrently probe; drop index concurrently if exists never_there;";
  await migrate(url, { folder: await folderOf({ "9001-no-probe.concurrently.sql": sql }) });
  expect(await indexes(db, "probe")).toEqual([]);
});

test("concurrent index migrations of several processes do not block each other", async () => {
  const { url, db } = await openDatabase();
  const folder = await folderOf({ "9001-p.concurrently.sql": "create index concurrently probe on keys (start)" });
  await Promise.all(Array.from({ length: 4 }, () => migrate(url, { folder })));
  expect(await indexes(db, "probe")).toEqual([{ valid: true }]);
});

test.each([
  {
    name: "that would skip an invalid index",
    sql: "create index concurrently if not exists probe on keys (start)",
  },
  { name: "that stops writes", sql: "create index probe on keys (start)" },
  { name: "without a name to look for", sql: "create index concurrently on keys (start)" },
  { name: "that is no index", sql: "create index concurrently probe on keys (start); update keys set start = ''" },
])("migration statement $name is rejected outside a transaction", async ({ sql }) => {
  const { url, db } = await openDatabase();
  const folder = await folderOf({ "9001-p.concurrently.sql": sql });
  await expect(migrate(url, { folder })).rejects.toThrow("9001-p.concurrently.sql may only hold");
  expect(await indexes(db, "probe")).toEqual([]);
});
