import { afterAll, expect, test } from "vitest";
import { withClient } from "./parts/postgres.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "./postgres.ts";

const made: TestDatabase[] = [];
async function kept(database: Promise<TestDatabase>): Promise<TestDatabase> {
  made.push(await database);
  return await database;
}
afterAll(() => Promise.all(made.map((database) => database.drop())));

const countTables = ({ url }: TestDatabase) =>
  withClient(url, async (client) => {
    const text =
      "select count(*)::int as n from pg_tables where schemaname not in ('pg_catalog', 'information_schema')";
    return (await client.query<{ n: number }>(text)).rows[0]?.n;
  });

test("test database is a real Postgres 18", async () => {
  const { url } = await kept(createEmptyDatabase());
  const { rows } = await withClient(url, (client) => client.query<{ version: string }>("select version()"));
  expect(rows[0]?.version).toMatch(/^PostgreSQL 18/);
});

test("empty test database has no tables, a migrated one has all", async () => {
  expect(await countTables(await kept(createEmptyDatabase()))).toBe(0);
  expect(await countTables(await kept(createTestDatabase()))).toBeGreaterThan(3);
});

test("concurrently created test databases are separate", async () => {
  const all = await Promise.all([1, 2, 3, 4].map(() => kept(createTestDatabase())));
  const [first, ...others] = all;
  const before = await Promise.all(others.map(countTables));
  await withClient(first?.url ?? "", (client) => client.query("create table only_here ()"));
  expect(await Promise.all(others.map(countTables))).toEqual(before);
});

test("dropped test database no longer exists, and dropping it again has no effect", async () => {
  const database = await createEmptyDatabase();
  await database.drop();
  await database.drop();
  await expect(withClient(database.url, (client) => client.query("select 1"))).rejects.toThrow("does not exist");
});
