import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Queryable } from "../../postgres/queryable.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { type KeyFilter, type KeyPosition, searchKeys } from "./key-search.ts";
import { listMatrixRows, listUsedRoles } from "./permission-matrix.ts";

/*
 * Which index answers which search, by the planner's word, on a table of which most rows belong to others.
 */

let database: TestDatabase;
let db: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
  await db.query(`insert into workspaces (id, name, created_at) values ('ws', 'ws', 0), ('other', 'other', 0)`);
  await db.query(`insert into apis (id, workspace_id, key_space_id, name, created_at)
                  select a, w, 'ks_' || a, a, 0
                    from (values ('api_large', 'ws'), ('api_small', 'ws'), ('api_other', 'other')) as v (a, w)`);
  // Without triggers, because these rows need no marks.
  await db.query("set session_replication_role = replica");
  await db.query(`insert into identities (id, workspace_id, external_id, created_at)
                  select 'id_' || i, 'ws', 'user_' || i, 0 from generate_series(1, 1000) as i`);
  await db.query(`insert into keys (id, workspace_id, api_id, hash, start, name, identity_id, owner_id, enabled, expires_at, created_at)
                  select 'key_' || md5(i::text), case when i % 4 = 0 then 'other' else 'ws' end,
                         case when i % 4 = 0 then 'api_other' when i % 100 = 1 then 'api_small' else 'api_large' end,
                         'hash_' || i, 'prod_' || left(md5(i::text || 's'), 4), 'Key ' || left(md5(i::text || 'n'), 6) || ' 50%',
                         case when i % 3 = 0 then 'id_' || (i % 1000 + 1) end, case when i % 1000 = 7 then 'user_8' end,
                         i % 500 <> 1, case when i % 1000 = 3 then 1500000 when i % 20 = 5 then 3000000 end,
                         1000000 + (i * 7919) % 40000
                    from generate_series(1, 40000) as i`);
  await db.query(
    `insert into roles (id, workspace_id, name, created_at) values ('role_rare', 'ws', 'rare', 0), ('role_common', 'ws', 'common', 0)`,
  );
  await db.query(`insert into permissions (id, workspace_id, slug, name, created_at)
                  values ('perm', 'ws', 'docs.read', 'docs.read', 0), ('perm_common', 'ws', 'docs.list', 'docs.list', 0)`);
  await db.query(`insert into role_permissions (role_id, permission_id, workspace_id)
                  values ('role_rare', 'perm', 'ws'), ('role_common', 'perm_common', 'ws')`);
  await db.query(`insert into key_roles (key_id, role_id, workspace_id)
                  select k.id, 'role_common', 'ws' from keys k where k.workspace_id = 'ws'
                  union all
                  (select k.id, 'role_rare', 'ws' from keys k where k.workspace_id = 'ws' order by k.id limit 20)`);
  await db.query(`insert into key_permissions (key_id, permission_id, workspace_id)
                  (select k.id, 'perm', 'ws' from keys k where k.workspace_id = 'ws' order by k.id limit 5)`);
  await db.query("vacuum analyze");
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

const search = (filter: Partial<KeyFilter>): KeyFilter => ({
  workspaceId: "ws",
  apiIds: "all",
  nowMs: 2_000_000,
  ...filter,
});

/** The indexes of `keys` that the search reads. */
async function indexesOf(filter: Partial<KeyFilter>, after?: KeyPosition): Promise<string[]> {
  const found = new Set<string>();
  const explaining: Queryable = {
    query: async ({ text, values }: { text: string; values: unknown[] }) => {
      if (!text.includes("with page as")) return db.query(text, values);
      const { rows } = await db.query(`explain (format json) ${text}`, values);
      // The page alone: what it is joined with is found by ids.
      const [{ Plan: plan }] = rows[0]["QUERY PLAN"];
      for (const [, name = ""] of JSON.stringify(plan).matchAll(/"Index Name":"(keys_\w+)"/g)) found.add(name);
      return { rows: [], rowCount: 0 };
    },
  } as never;
  await searchKeys(explaining, search(filter), { after, rowsMax: 101 });
  found.delete("keys_pkey");
  return [...found].sort();
}

describe("is answered by an index:", () => {
  test.each<{ name: string; filter: Partial<KeyFilter>; indexes: string[] }>([
    { name: "the newest of an API", filter: { apiIds: ["api_small"] }, indexes: ["keys_newest_of_api"] },
    { name: "the newest of all", filter: {}, indexes: ["keys_newest"] },
    { name: "a hash", filter: { hash: "hash_3" }, indexes: ["keys_hash_key"] },
    { name: "an id", filter: { keyId: "key_3" }, indexes: [] },
    { name: "a rare beginning of a name, of all", filter: { name: "KEY ABCD" }, indexes: ["keys_by_name"] },
    { name: "a rare start, of all", filter: { start: "prod_ab" }, indexes: ["keys_by_start"] },
    { name: "a start that all have, of all", filter: { start: "prod_" }, indexes: ["keys_newest"] },
    {
      name: "an owner",
      filter: { owner: { identityId: "id_8", externalId: "user_8" } },
      indexes: ["keys_by_identity", "keys_by_owner"],
    },
    { name: "disabled ones, which are few", filter: { enabled: false }, indexes: ["keys_disabled"] },
    { name: "expired ones, which are few", filter: { expired: true }, indexes: ["keys_by_expiry"] },
    { name: "ones that expire soon", filter: { expiresBefore: 3_000_001 }, indexes: ["keys_by_expiry"] },
    {
      name: "ones that expire soon, of the API of most keys",
      filter: { apiIds: ["api_large"], expiresBefore: 3_000_001 },
      indexes: ["keys_by_expiry"],
    },
    { name: "enabled ones, which are many", filter: { enabled: true }, indexes: ["keys_newest"] },
    { name: "a rare role", filter: { roleId: "role_rare" }, indexes: [] },
    { name: "a common role", filter: { roleId: "role_common" }, indexes: ["keys_newest"] },
    { name: "a rare permission", filter: { permissionId: "perm" }, indexes: [] },
    { name: "a common permission", filter: { permissionId: "perm_common" }, indexes: ["keys_newest"] },
  ])("key search by $name uses the expected index", async ({ filter, indexes }) =>
    expect(await indexesOf(filter)).toEqual(indexes),
  );
});

test("key search uses the expiry index to continue among keys with the same expiry time", async () =>
  expect(await indexesOf({ expiresBefore: 3_000_001 }, { atMs: 3_000_000, keyId: "key_8" })).toEqual([
    "keys_by_expiry",
  ]));

test("key search statistics let Postgres estimate few rows for a rare name prefix", async () => {
  const { rows } = await db.query(
    `explain (format json) select from keys k where k.workspace_id = 'ws' and lower(k.name) like 'zz%'`,
  );
  expect(rows[0]["QUERY PLAN"][0].Plan["Plan Rows"]).toBeLessThan(10);
});

test("role list counts the keys of a role with the index by role", async () => {
  let plan = "";
  const explaining: Queryable = {
    query: async ({ text, values }: { text: string; values: unknown[] }) => {
      plan = JSON.stringify((await db.query(`explain (format json) ${text}`, values)).rows);
      return { rows: [], rowCount: 0 };
    },
  } as never;
  await listUsedRoles(explaining, { workspaceId: "ws", cursor: "", search: "", rowsMax: 101 });
  expect(plan).toContain("key_roles_by_role");
  expect(plan).not.toContain("key_roles_pkey");
  await listMatrixRows(explaining, { workspaceId: "ws", cursor: "", search: "", rowsMax: 101, roleIds: [] });
  expect(plan).not.toContain("key_permissions_pkey");
});

describe("finds", () => {
  const idsOf = async (filter: Partial<KeyFilter>): Promise<string[]> =>
    (await searchKeys(db, search(filter), { after: undefined, rowsMax: 100_000 })).map(({ id }) => id);
  /** The same by a statement of its own, in any order. */
  const expected = async (where: string): Promise<Set<string>> => {
    const { rows } = await db.query(`select k.id from keys k where k.workspace_id = 'ws' and (${where})`);
    return new Set(rows.map(({ id }) => id));
  };

  test.each<{ name: string; filter: Partial<KeyFilter>; where: string }>([
    { name: "all of the workspace", filter: {}, where: "true" },
    { name: "those of single APIs", filter: { apiIds: ["api_small", "api_other"] }, where: "api_id = 'api_small'" },
    { name: "none of no API", filter: { apiIds: [] }, where: "false" },
    { name: "the beginning of a name, of all", filter: { name: "kEY a" }, where: "name ilike 'key a%'" },
    { name: "no part of a name, of all", filter: { name: "a1" }, where: "false" },
    {
      name: "a part of a name, of an API",
      filter: { apiIds: ["api_large"], name: "A1" },
      where: "api_id = 'api_large' and name ilike '%a1%'",
    },
    { name: "percent signs as they are", filter: { apiIds: ["api_large"], name: "%%" }, where: "false" },
    { name: "an underscore as it is", filter: { start: "prod-" }, where: "false" },
    { name: "disabled ones", filter: { enabled: false }, where: "not enabled" },
    { name: "expired ones", filter: { expired: true }, where: "expires_at < 2000000" },
    { name: "no expired ones", filter: { expired: false }, where: "expires_at is null or expires_at > 2000000" },
    {
      name: "enabled ones that expire soon",
      filter: { expiresBefore: 3_000_001 },
      where: "enabled and expires_at = 3000000",
    },
    { name: "none that expires in the first millisecond after", filter: { expiresBefore: 3_000_000 }, where: "false" },
    {
      name: "ones that expire soon among those of an owner",
      filter: { expiresBefore: 3_000_001, owner: { identityId: "id_8", externalId: "user_8" } },
      where: "enabled and expires_at = 3000000 and (identity_id = 'id_8' or owner_id = 'user_8')",
    },
    { name: "no disabled ones that expire soon", filter: { expiresBefore: 3_000_001, enabled: false }, where: "false" },
    {
      name: "an owner by its identity and as v1 was told it, each once",
      filter: { owner: { identityId: "id_8", externalId: "user_8" } },
      where: "identity_id = 'id_8' or owner_id = 'user_8'",
    },
    {
      name: "an owner without an identity",
      filter: { owner: { identityId: undefined, externalId: "user_8" } },
      where: "owner_id = 'user_8'",
    },
    {
      name: "a permission held directly and through a role, each once",
      filter: { permissionId: "perm" },
      where: "id in (select key_id from key_roles where role_id = 'role_rare')",
    },
    {
      name: "a permission that all hold through a role, each once",
      filter: { permissionId: "perm_common" },
      where: "true",
    },
    { name: "no key with a permission that is none", filter: { permissionId: "perm_none" }, where: "false" },
  ])("key search finds the expected keys: $name", async ({ filter, where }) => {
    const ids = await idsOf(filter);
    expect(new Set(ids)).toEqual(await expected(where));
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("key search sorts keys that expire soon by expiry and id, without duplicates or gaps among equal expiry times", async () => {
    await db.query("update keys set expires_at = 2000000 + created_at % 3 where api_id = 'api_small'");
    const filter = search({ apiIds: ["api_small"], expiresBefore: 2_000_002 });
    const { rows } = await db.query(
      `select id from keys where api_id = 'api_small' and enabled and expires_at < 2000002 order by expires_at, id`,
    );
    const paged: string[] = [];
    for (let last = undefined as { expires_at: number | null; id: string } | undefined; ; ) {
      const after = last && { atMs: last.expires_at ?? 0, keyId: last.id };
      const page = await searchKeys(db, filter, { after, rowsMax: 37 });
      paged.push(...page.map(({ id }) => id));
      last = page.at(-1);
      if (last === undefined) break;
    }
    expect(paged).toEqual(rows.map(({ id }) => id));
    expect(paged.length).toBeGreaterThan(37 * 2);
  });

  test("key search returns keys newest first, without duplicates or gaps across pages", async () => {
    await db.query("update keys set created_at = 1000000 + (created_at % 5) where api_id = 'api_small'");
    const filter = search({ apiIds: ["api_small"] });
    const whole = await searchKeys(db, filter, { after: undefined, rowsMax: 100_000 });
    const paged: string[] = [];
    for (let last = undefined as (typeof whole)[number] | undefined; ; ) {
      const after = last && { atMs: last.created_at, keyId: last.id };
      const page = await searchKeys(db, filter, { after, rowsMax: 37 });
      paged.push(...page.map(({ id }) => id));
      last = page.at(-1);
      if (last === undefined) break;
    }
    expect(paged).toEqual(whole.map(({ id }) => id));
    expect(whole.length).toBeGreaterThan(37 * 3);
  });
});
