import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "../../postgres/pool.ts";
import type { Queryable } from "../../postgres/queryable.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { insertKeys, insertWorkspace, type RowsOfWorkspace } from "../../test/harness/rows.ts";
import { listApisOfKeys, listKeyIds, listKeyIdsOfIdentity, listKeysThatFit } from "./keys.ts";

/* What lists of keys read right after many keys were inserted, before Postgres has statistics of them. */

const KEYS = 30_000;
const PAGE = 50;

interface Plan {
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly Plans?: readonly Plan[];
}

let database: TestDatabase;
let db: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 2 });
  await db.query("alter table keys set (autovacuum_enabled = false)");
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

/** How many rows of keys, or entries of their indexes, the statements read that `ask` runs. */
async function rowsRead(ask: (db: Queryable) => Promise<unknown>): Promise<number> {
  const asked: { text: string; values: unknown[] }[] = [];
  const recording = {
    query: async (statement: { text: string; values: unknown[] }) => {
      asked.push(statement);
      return { rows: [] };
    },
  } as unknown as Queryable;
  await ask(recording);
  let rows = 0;
  for (const { text, values } of asked) {
    const explained = await db.query(`explain (analyze, format json) ${text}`, values);
    rows += countRows(explained.rows[0]["QUERY PLAN"][0].Plan);
  }
  return rows;
}

function countRows(plan: Plan): number {
  const isOfKeys = plan["Relation Name"] === "keys" || plan["Index Name"]?.startsWith("keys_") === true;
  const each = (plan["Actual Rows"] ?? 0) + (plan["Rows Removed by Filter"] ?? 0);
  const own = isOfKeys ? each * (plan["Actual Loops"] ?? 1) : 0;
  return (plan.Plans ?? []).reduce((sum, child) => sum + countRows(child), own);
}

async function fill(name: string): Promise<{ of: RowsOfWorkspace; keyIds: string[]; identityId: string }> {
  const of = await insertWorkspace(db, name);
  await insertKeys(db, of, { to: KEYS });
  const identityId = `id_of_${name.replaceAll(" ", "_")}`;
  await db.query("insert into identities (id, workspace_id, external_id, created_at) values ($1, $2, 'who', 1)", [
    identityId,
    of.workspaceId,
  ]);
  const linked = "select id from keys where api_id = $2 order by hash limit 10";
  await db.query(`update keys set identity_id = $1 where id in (${linked})`, [identityId, of.apiId]);
  const { rows } = await db.query<{ id: string }>("select id from keys where api_id = $1 order by hash limit $2", [
    of.apiId,
    PAGE,
  ]);
  return { of, keyIds: rows.map(({ id }) => id), identityId };
}

describe.each([
  { state: "of no key", analyze: false },
  { state: "of other workspaces alone", analyze: true },
])("Postgres has statistics $state", ({ state, analyze }) => {
  let filled: Awaited<ReturnType<typeof fill>>;
  beforeAll(async () => {
    if (analyze) await db.query("analyze");
    filled = await fill(state);
  });

  test("key list reads only as many rows as its page has", async () => {
    const { of, keyIds, identityId } = filled;
    const { workspaceId } = of;
    const page = { ...of, cursor: "", rowsMax: PAGE };
    const read = {
      ids: await rowsRead((on) => listKeyIds(on, page)),
      ofIdentity: await rowsRead((on) => listKeyIdsOfIdentity(on, { ...page, identityId })),
      keys: await rowsRead((on) => listKeysThatFit(on, { workspaceId, keyIds, bytesMax: 4_000_000 })),
      apis: await rowsRead((on) => listApisOfKeys(on, { workspaceId, keyIds })),
    };
    const tooMany = Object.entries(read).filter(([, rows]) => rows > 3 * PAGE);
    expect(tooMany, JSON.stringify(read)).toEqual([]);
  });

  test("key list returns the correct page without statistics of its keys", async () => {
    const { of, keyIds, identityId } = filled;
    const page = { ...of, cursor: "", rowsMax: KEYS };
    const all = await listKeyIds(db, page);
    expect(all).toHaveLength(KEYS);
    expect(all).toEqual(all.toSorted());
    const [cursor = ""] = all.slice(100);
    expect(await listKeyIds(db, { ...page, cursor, rowsMax: 3 })).toEqual(all.slice(100, 103));
    expect(await listKeyIdsOfIdentity(db, { ...page, identityId })).toEqual(keyIds.slice(0, 10).toSorted());
    const rows = await listKeysThatFit(db, { workspaceId: of.workspaceId, keyIds, bytesMax: 4_000_000 });
    expect(rows.map(({ id }) => id)).toEqual(keyIds);
    expect(await listApisOfKeys(db, { workspaceId: of.workspaceId, keyIds })).toEqual([of.apiId]);
  });
});

test("key list excludes deleted keys and the keys of other workspaces", async () => {
  const { of, keyIds, identityId } = await fill("whose keys are asked for");
  const { workspaceId } = await insertWorkspace(db, "that asks");
  const lists = async (asking: string) => {
    const page = { workspaceId: asking, apiId: of.apiId, cursor: "", rowsMax: PAGE };
    const ofKeys = { workspaceId: asking, keyIds };
    return {
      ids: (await listKeyIds(db, page)).length,
      ofIdentity: (await listKeyIdsOfIdentity(db, { ...page, identityId })).length,
      keys: (await listKeysThatFit(db, { ...ofKeys, bytesMax: 4_000_000 })).length,
      apis: (await listApisOfKeys(db, ofKeys)).length,
    };
  };
  const nothing = { ids: 0, ofIdentity: 0, keys: 0, apis: 0 };
  expect(await lists(of.workspaceId)).toEqual({ ids: PAGE, ofIdentity: 10, keys: PAGE, apis: 1 });
  expect(await lists(workspaceId)).toEqual(nothing);
  await db.query("update keys set deleted_at = 1 where api_id = $1", [of.apiId]);
  expect(await lists(of.workspaceId)).toEqual(nothing);
});
