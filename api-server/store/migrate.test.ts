import pg from "pg";
import { expect, test } from "vitest";
import { createEmptyDatabase } from "../../test/harness/postgres.ts";
import { listMigrations, migrate } from "./migrate.ts";

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

test("an empty database gets every migration once, also when several processes start at once", async () => {
  const database = await createEmptyDatabase();
  await Promise.all([migrate(database.url), migrate(database.url), migrate(database.url)]);
  await migrate(database.url);
  const expected = (await listMigrations()).map(({ version }) => version);
  expect(await versionsOf(database.url)).toEqual(expected);
  await database.drop();
});
