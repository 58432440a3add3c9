import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import type { Queryable } from "../../postgres/queryable.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { readRecords } from "../../test/harness/projected-records.ts";
import { migrate } from "./migrate.ts";
import { listOverridePatterns } from "./overrides.ts";
import { containing } from "./pages.ts";
import { listRecordRefs } from "./records.ts";

async function withClient<T>({ url }: Pick<TestDatabase, "url">, work: (db: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const hasIndex = (database: Pick<TestDatabase, "url">): Promise<boolean> =>
  withClient(database, async (db) => {
    const { rows } = await db.query("select to_regclass('identities_search') is not null as there");
    return rows[0].there;
  });

/** The names of the indexes that a statement uses. */
async function indexesOf(db: pg.Client, statement: string, values: readonly unknown[]): Promise<string[]> {
  const { rows } = await db.query(`explain (format json) ${statement}`, [...values]);
  const text = JSON.stringify(rows[0]["QUERY PLAN"]);
  return [...new Set(Array.from(text.matchAll(/"Index Name":"(\w+)"/g), ([, name = ""]) => name))];
}

test("external id search uses trigrams, and lists without a search use ids", async () => {
  const database = await createTestDatabase();
  await withClient(database, async (db) => {
    await db.query("insert into workspaces (id, name, created_at) values ('ws', 'ws', 0)");
    // Without triggers, because these rows need no marks.
    await db.query("set session_replication_role = replica");
    await db.query(`insert into identities (id, workspace_id, external_id, created_at)
                    select 'id_' || md5(i::text), 'ws', 'user.' || md5(i::text || 'x'), 0
                      from generate_series(1, 10000) as i`);
    await db.query("vacuum analyze identities");
    const page = `select id, external_id, meta from identities
                   where workspace_id = 'ws' and id >= $1 and deleted_at is null`;
    const rare = `${page} and (id ilike $2 or external_id ilike $2) order by id limit 101`;
    expect(await indexesOf(db, rare, ["", containing("abcdef")])).toEqual(["identities_search"]);
    expect(await indexesOf(db, `${page} order by id limit 101`, ["id_5"])).toEqual(["identities_by_workspace"]);
  });
  await database.drop();
});

test("external id search works with the trigram extension installed in any schema", async () => {
  const database = await createEmptyDatabase();
  await withClient(database, (db) => db.query("create schema extensions; create extension pg_trgm schema extensions"));
  await migrate(database.url);
  expect(await hasIndex(database)).toBe(true);
  await database.drop();
});

test("migration without permission to install extensions skips the trigram index", async () => {
  const database = await createEmptyDatabase();
  const role = `postern_test_${randomBytes(6).toString("hex")}`;
  const url = new URL(database.url);
  url.username = role;
  url.password = role;
  await withClient(database, async (db) => {
    await db.query(`create role ${role} login password '${role}'`);
    // Nor may it create a schema: it has been given the one of analytics.
    await db.query(`create schema analytics authorization ${role}`);
    await db.query(`grant usage, create on schema public to ${role}`);
  });
  try {
    await migrate(url.href);
    expect(await hasIndex(database)).toBe(false);
  } finally {
    await withClient(database, (db) => db.query(`drop owned by ${role}; drop role ${role}`));
    await database.drop();
  }
});

test("pattern overrides are found by an index of their own", async () => {
  const database = await createTestDatabase();
  await withClient(database, async (db) => {
    await db.query("insert into workspaces (id, name, created_at) values ('ws', 'ws', 0)");
    await db.query(
      "insert into ratelimit_namespaces (id, workspace_id, name, created_at) values ('ns', 'ws', 'ns', 0)",
    );
    await db.query("set session_replication_role = replica");
    await db.query(`insert into ratelimit_overrides
                      (id, workspace_id, namespace_id, identifier, max_count, duration_ms, created_at)
                    select 'o_' || i, 'ws', 'ns', case when i % 5000 = 0 then 'vip-' || i || '-*' else 'user-' || i end, 1, 1000, 0
                      from generate_series(1, 20000) as i`);
    await db.query("vacuum analyze ratelimit_overrides");
    const asked: string[][] = [];
    const explaining: Queryable = {
      query: async ({ text, values }: { text: string; values: unknown[] }) => {
        asked.push(await indexesOf(db, text, values));
        return { rows: [], rowCount: 0 };
      },
    } as never;
    await listOverridePatterns(explaining, { workspaceId: "ws", namespaceId: "ns" });
    await readRecords(explaining, [{ workspaceId: "ws", kind: "overridePatterns", id: "ns" }]);
    await listRecordRefs(explaining, { kind: "overridePatterns", after: "", max: 1000 });
    expect(asked).toEqual([
      ["ratelimit_overrides_patterns"],
      ["ratelimit_overrides_patterns"],
      ["ratelimit_overrides_patterns"],
    ]);
  });
  await database.drop();
});
