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

test("the database is a real Postgres 18", async () => {
  const { url } = await kept(createEmptyDatabase());
  const { rows } = await withClient(url, (client) => client.query<{ version: string }>("select version()"));
  expect(rows[0]?.version).toMatch(/^PostgreSQL 18/);
});

test("an empty database has no tables, a test database has those of the migrations", async () => {
  expect(await countTables(await kept(createEmptyDatabase()))).toBe(0);
  expect(await countTables(await kept(createTestDatabase()))).toBeGreaterThan(3);
});

test("databases made at the same time do not see each other's tables", async () => {
  const all = await Promise.all([1, 2, 3, 4].map(() => kept(createTestDatabase())));
  const [first, ...others] = all;
  const before = await Promise.all(others.map(countTables));
  await withClient(first?.url ?? "", (client) => client.query("create table only_here ()"));
  expect(await Promise.all(others.map(countTables))).toEqual(before);
});

test("a dropped database is gone, and dropping it again does no harm", async () => {
  const database = await createEmptyDatabase();
  await database.drop();
  await database.drop();
  await expect(withClient(database.url, (client) => client.query("select 1"))).rejects.toThrow("does not exist");
});
