import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { isDatabaseUnavailable } from "../../postgres/failures.ts";
import { openLine } from "../../test/faults/line.ts";
import { createEmptyDatabase } from "../../test/harness/postgres.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { demandMigrated, MIGRATION_LOCK, migrate, SchemaBehind } from "./migrate.ts";
import { listMigrations } from "./migration-files.ts";

async function versionsOf(url: string): Promise<number[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ version: number }>("select version from schema_migrations order by version");
    return rows.map(({ version }) => version);
  } finally {
    await client.end();
  }
}

test("concurrent starts on an empty database apply every migration exactly once", async () => {
  const database = await createEmptyDatabase();
  await Promise.all([migrate(database.url), migrate(database.url), migrate(database.url)]);
  await migrate(database.url);
  const expected = (await listMigrations()).map(({ version }) => version);
  expect(await versionsOf(database.url)).toEqual(expected);
  await database.drop();
});

test("migrate reports each migration in order before applying it, and reports nothing if none is pending", async () => {
  const database = await createEmptyDatabase();
  onTestFinished(() => database.drop());
  const told: { fileName: string; done: number; total: number }[] = [];
  await migrate(database.url, { onMigration: (now) => void told.push(now) });
  const all = await listMigrations();
  expect(told).toEqual(all.map(({ fileName }, done) => ({ fileName, done, total: all.length })));
  await migrate(database.url, { onMigration: (now) => void told.push(now) });
  expect(told).toHaveLength(all.length);
});

test("database user without CREATE starts only on a migrated database", async () => {
  const database = await createEmptyDatabase();
  const owner = new pg.Client({ connectionString: database.url });
  await owner.connect();
  const role = `t_${randomBytes(5).toString("hex")}`;
  onTestFinished(async () => {
    await owner.query(`drop owned by ${role}; drop role ${role}`);
    await owner.end();
    await database.drop();
  });
  await owner.query(`create role ${role} login password 'of_the_test'`);
  const url = Object.assign(new URL(database.url), { username: role, password: "of_the_test" }).href;
  await expect(demandMigrated(url)).rejects.toThrow(/lacks the migration 0001-initial.sql/);
  await expect(migrate(url)).rejects.toThrow(/permission denied/);

  await migrate(database.url);
  await owner.query(`grant select on schema_migrations to ${role}`);
  await demandMigrated(url);
  await migrate(url);
  await owner.query("delete from schema_migrations where version = (select max(version) from schema_migrations)");
  const { fileName } = (await listMigrations()).at(-1) ?? {};
  await expect(demandMigrated(url)).rejects.toThrow(new SchemaBehind(`the database lacks the migration ${fileName}`));
});

test("migration leaves the schema of a newer version unchanged", async () => {
  const database = await createEmptyDatabase();
  const folder = await mkdtemp(join(tmpdir(), "postern-later-release-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "9999-later.sql"), "create table later (id text)");
  await migrate(database.url);
  await migrate(database.url, { folder });
  const versions = await versionsOf(database.url);
  await migrate(database.url);
  expect(await versionsOf(database.url)).toEqual(versions);
  expect(versions.at(-1)).toBe(9999);
  await database.drop();
});

test("migration that loses its connection fails without an uncaught error", async () => {
  const database = await createEmptyDatabase();
  const line = await openLine(database.url);
  const holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
  await holder.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
  const through = new URL(database.url);
  through.port = new URL(line.url).port;
  const migrating = expect(migrate(through.href)).rejects.toSatisfy(isDatabaseUnavailable);
  await waitFor("it to wait for its turn", async () => {
    const text =
      "select from pg_stat_activity where datname = current_database() and query like '%pg_try_advisory_lock%'";
    return (await holder.query(`${text} and application_name = 'postern-migrate'`)).rowCount === 1;
  });
  line.cut();
  // An error without a listener would fail the whole run.
  await migrating;
  await line.close();
  await holder.end();
  await database.drop();
});
