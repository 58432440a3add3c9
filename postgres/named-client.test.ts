import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../test/harness/postgres.ts";
import { preparedName } from "./named-client.ts";
import { createPool } from "./pool.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

test("two Postgres statements with the same name and different SQL are both prepared, each only once", async () => {
  const db = createPool(database.url, { connectionsMax: 1 });
  try {
    for (let time = 0; time < 2; time++) {
      const one = await db.query({ name: "same-name", text: "select $1::int + 1 as sum", values: [1] });
      const other = await db.query({ name: "same-name", text: "select $1::int + 2 as sum", values: [1] });
      expect([one.rows[0], other.rows[0]]).toEqual([{ sum: 2 }, { sum: 3 }]);
    }
    const { rows } = await db.query("select name from pg_prepared_statements where statement like '%as sum'");
    expect(rows).toHaveLength(2);
    for (const { name } of rows) expect(name).toMatch(/^same-name-[0-9a-f]{12}$/);
  } finally {
    await db.end();
  }
});

test("long name of a Postgres statement is truncated, but its hash is not", () => {
  const [one, other] = [preparedName("x".repeat(80), "select 1"), preparedName("x".repeat(80), "select 2")];
  expect(one).toHaveLength(63);
  expect(one).not.toBe(other);
});

test("every Postgres connection of the server names its prepared statements", async () => {
  const root = join(import.meta.dirname, "..");
  const opening: string[] = [];
  for (const part of ["postgres", "analytics", "api-server"]) {
    const files = (await readdir(join(root, part), { recursive: true })).filter((name) =>
      /(?<!\.test)\.ts$/.test(name),
    );
    for (const name of files) {
      if (/new (pg\.)?(Client|Pool)\(/.test(await readFile(join(root, part, name), "utf8")))
        opening.push(`${part}/${name}`);
    }
  }
  // The pool opens connections of this kind; migrations have no prepared statements.
  expect(opening).toEqual(["postgres/pool.ts", "api-server/db/migrate.ts"]);
});
