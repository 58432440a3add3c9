import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PolicyRecord } from "../../core/policies/stored-policy.ts";
import {
  ApiRecord,
  IdentityRecord,
  KeyRecord,
  NamespaceRecord,
  OverridePatternsRecord,
  OverrideRecord,
  RoleRecord,
  WorkspaceRecord,
} from "../../core/records.ts";
import type { RecordKind, RecordRef } from "../../edge/records.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { readRecords } from "../../test/harness/projected-records.ts";
import { insertKeys, insertOtherKinds, insertWorkspace, keyRow } from "../../test/harness/rows.ts";
import { countRecordRefs, createPostgresSource, LISTED_KINDS, listRecordRefs, readSomeRecords } from "./records.ts";

/* Each record as it is read from Postgres, checked with the schema in core that its readers use, in every state. */

const SCHEMAS = {
  key: KeyRecord,
  identity: IdentityRecord,
  role: RoleRecord,
  api: ApiRecord,
  workspace: WorkspaceRecord,
  namespace: NamespaceRecord,
  namespaceName: NamespaceRecord,
  override: OverrideRecord,
  overridePatterns: OverridePatternsRecord,
  policy: PolicyRecord,
} satisfies Partial<Record<RecordKind, unknown>>;
type Kind = keyof typeof SCHEMAS;

const WORKSPACE = "ws_records";
const OTHER = "ws_other";
const MAX = Number.MAX_SAFE_INTEGER;

/** Everything that a JSON document can contain and that might be changed on its way. */
const META = {
  nothing: null,
  deep: { nothing: null, list: [null, { nothing: null }, []], empty: {} },
  quotes: `"double" 'single' \\ back / slash`,
  unicode: "äöü 漢字 🔑 \u2028 \u200f \u0001",
  number: 1.5,
  big: MAX,
  yes: true,
  "key with 'quotes' and \"more\"": 1,
  "": "empty",
  __proto__x: 1,
};

let database: TestDatabase;
let db: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

beforeEach(async () => {
  await db.query(
    `truncate policies, ratelimit_overrides, ratelimit_namespaces, key_roles, key_permissions, role_permissions, roles,
              permissions, ratelimits, key_credits, keys, identities, apis, root_keys, workspaces cascade`,
  );
  await db.query("insert into workspaces (id, name, created_at) values ($1, 'one', 1), ($2, 'two', 1)", [
    WORKSPACE,
    OTHER,
  ]);
  await insert("apis", { id: "api_1", key_space_id: "ks_1", name: `the "api"` });
});

/** Inserts a row of the workspace, unless it names another one. */
async function insert(table: string, row: Record<string, unknown>): Promise<void> {
  const timed = ["ratelimit_overrides", "key_credits", "key_permissions", "key_roles", "role_permissions"].includes(
    table,
  );
  const all: Record<string, unknown> = { workspace_id: WORKSPACE, ...(timed ? {} : { created_at: 1 }), ...row };
  if (table === "ratelimit_overrides") all.created_at = 1;
  const names = Object.keys(all);
  const places = names.map((_, i) => `$${i + 1}`);
  await db.query(`insert into ${table} (${names.join(", ")}) values (${places.join(", ")})`, Object.values(all));
}

/** Reads the record and checks that it matches its schema exactly, without missing or extra members. undefined: there is none. */
async function read(kind: Kind, id: string, workspaceId = WORKSPACE): Promise<unknown> {
  const batch = await createPostgresSource(db).read([{ workspaceId, kind, id }]);
  const [record] = batch.usable ? batch.records : [];
  if (record?.state !== "found") return undefined;
  const { data } = record;
  const parsed = SCHEMAS[kind].parse(data);
  expect(data).toEqual(parsed);
  return data;
}

const aKey = (row: Record<string, unknown> = {}) =>
  insert("keys", { id: "key_1", api_id: "api_1", hash: "h1", start: "s", ...row });

describe("a key's record", () => {
  test("key record without optional parts has only required members", async () => {
    await aKey();
    expect(await read("key", "h1")).toEqual({
      keyId: "key_1",
      workspaceId: WORKSPACE,
      apiId: "api_1",
      keySpaceId: "ks_1",
      enabled: true,
      roleIds: [],
      permissions: [],
      ratelimits: [],
      limited: false,
    });
  });

  test("key record with all parts has all members and unmodified meta", async () => {
    await insert("identities", { id: "id_1", external_id: "user" });
    await aKey({
      name: `a "name" ✓`,
      identity_id: "id_1",
      meta: JSON.stringify(META),
      enabled: false,
      expires_at: MAX,
    });
    await insert("permissions", { id: "perm_1", slug: "a.*", name: "a" });
    await insert("permissions", { id: "perm_2", slug: "b:c", name: "b" });
    await insert("roles", { id: "role_1", name: "one" });
    for (const permission_id of ["perm_1", "perm_2"])
      await insert("key_permissions", { key_id: "key_1", permission_id });
    await insert("key_roles", { key_id: "key_1", role_id: "role_1" });
    await insert("key_credits", { key_id: "key_1", granted: 0 });
    await insert("ratelimits", {
      id: "rl_1",
      key_id: "key_1",
      name: "requests",
      max_count: MAX,
      duration_ms: 1000,
      auto_apply: true,
    });
    const record = (await read("key", "h1")) as KeyRecord;
    expect({ ...record, permissions: [...record.permissions].sort() }).toEqual({
      keyId: "key_1",
      workspaceId: WORKSPACE,
      apiId: "api_1",
      keySpaceId: "ks_1",
      enabled: false,
      name: `a "name" ✓`,
      meta: META,
      expiresMs: MAX,
      identityId: "id_1",
      roleIds: ["role_1"],
      permissions: ["a.*", "b:c"],
      ratelimits: [{ id: "rl_1", name: "requests", limit: MAX, durationMs: 1000, autoApply: true }],
      limited: true,
    });
  });

  test("key record is kept when its API or identity is deleted, but not when the key is deleted", async () => {
    await insert("identities", { id: "id_1", external_id: "user" });
    await aKey({ identity_id: "id_1" });
    await db.query("update apis set deleted_at = 5");
    await db.query("update identities set deleted_at = 5");
    expect(await read("key", "h1")).toMatchObject({ apiId: "api_1", identityId: "id_1" });
    expect([await read("api", "api_1"), await read("identity", "id_1")]).toEqual([undefined, undefined]);
    await db.query("update keys set deleted_at = 5");
    expect(await read("key", "h1")).toBeUndefined();
  });
});

test("tombstone states whether its row was removed", async () => {
  await insert("identities", { id: "id_1", external_id: "one", deleted_at: 5 });
  await insert("roles", { id: "role_1", name: "r" });
  const refs = [
    ["identity", "id_1"],
    ["identity", "id_never"],
    ["role", "role_1"],
    ["role", "role_gone"],
    ["api", "api_gone"],
    ["api", "api_1"],
    ["key", "unknown"],
  ] as const;
  const asked = refs.map(([kind, id]) => ({ workspaceId: WORKSPACE, kind, id }));
  await db.query("update apis set deleted_at = 5 where id = 'api_1'");
  const { writes } = await readSomeRecords(db, asked, { bytesMax: 1_000_000 });
  const removed = writes.filter(({ isRemoved }) => isRemoved).map(({ ref }) => ref.id);
  expect(removed).toEqual(["id_never", "role_gone", "api_gone"]);
  expect(writes.filter(({ data }) => data !== undefined).map(({ ref }) => ref.id)).toEqual(["role_1"]);
});

test("identity record contains the identity's limits and unmodified meta", async () => {
  await insert("identities", { id: "id_1", external_id: "user.1", meta: JSON.stringify(META) });
  await insert("identities", { id: "id_2", external_id: "user.2" });
  await insert("ratelimits", {
    id: "rl_1",
    identity_id: "id_1",
    name: "all",
    max_count: 5,
    duration_ms: 60_000,
    auto_apply: false,
  });
  expect(await read("identity", "id_1")).toEqual({
    id: "id_1",
    externalId: "user.1",
    meta: META,
    ratelimits: [{ id: "rl_1", name: "all", limit: 5, durationMs: 60_000, autoApply: false }],
  });
  expect(await read("identity", "id_2")).toEqual({ id: "id_2", externalId: "user.2", ratelimits: [] });
});

test("role record lists the role's permissions, possibly none, and is deleted with the role", async () => {
  await insert("roles", { id: "role_1", name: `r"1"` });
  expect(await read("role", "role_1")).toEqual({ id: "role_1", name: `r"1"`, permissions: [] });
  await insert("permissions", { id: "perm_1", slug: "a.read", name: "a" });
  await insert("role_permissions", { role_id: "role_1", permission_id: "perm_1" });
  expect(await read("role", "role_1")).toEqual({ id: "role_1", name: `r"1"`, permissions: ["a.read"] });
  await db.query("delete from roles");
  expect(await read("role", "role_1")).toBeUndefined();
});

test("API record includes the IP allow-list if the API has one", async () => {
  await insert("apis", { id: "api_2", key_space_id: "ks_2", name: "2", ip_allow_list: ["10.0.0.1", "::1"] });
  expect(await read("api", "api_1")).toEqual({ id: "api_1", name: `the "api"` });
  expect(await read("api", "api_2")).toEqual({ id: "api_2", name: "2", ipAllowList: ["10.0.0.1", "::1"] });
});

test("workspace record states whether the workspace is enabled, and is deleted with it", async () => {
  await db.query("update workspaces set enabled = false where id = $1", [OTHER]);
  expect(await read("workspace", WORKSPACE)).toEqual({ id: WORKSPACE, enabled: true });
  expect(await read("workspace", OTHER, OTHER)).toEqual({ id: OTHER, enabled: false });
  await db.query("update workspaces set deleted_at = 5 where id = $1", [WORKSPACE]);
  expect(await read("workspace", WORKSPACE)).toBeUndefined();
});

test("namespace name maps to the live namespace or, without one, to the last deleted one", async () => {
  await insert("ratelimit_namespaces", { id: "rlns_1", name: "public api/'1'", deleted_at: 5 });
  await insert("ratelimit_namespaces", { id: "rlns_2", name: "public api/'1'", deleted_at: 7 });
  const deleted = (id: string) => ({ id, name: "public api/'1'", deleted: true });
  expect(await read("namespaceName", "public api/'1'")).toEqual(deleted("rlns_2"));
  await insert("ratelimit_namespaces", { id: "rlns_0", name: "public api/'1'" });
  expect(await read("namespaceName", "public api/'1'")).toEqual({ ...deleted("rlns_0"), deleted: false });
  expect([await read("namespace", "rlns_1"), await read("namespace", "rlns_0")]).toEqual([
    deleted("rlns_1"),
    { ...deleted("rlns_0"), deleted: false },
  ]);
});

test("each exact override has its own record, and all pattern overrides share one record", async () => {
  await insert("ratelimit_namespaces", { id: "rlns_1", name: "one" });
  const of = (id: string, identifier: string, more: object = {}) =>
    insert("ratelimit_overrides", { id, namespace_id: "rlns_1", identifier, max_count: 0, duration_ms: MAX, ...more });
  await of("rlor_1", "user/1//%_ ü", { async: true });
  await of("rlor_2", "premium_*");
  await of("rlor_3", "*");
  await of("rlor_4", "gone", { deleted_at: 5 });
  await of("rlor_5", "gone*", { deleted_at: 5 });
  const record = (id: string, identifier: string) => ({ id, identifier, limit: 0, durationMs: MAX, async: false });
  expect(await read("override", "rlns_1/user/1//%_ ü")).toEqual({ ...record("rlor_1", "user/1//%_ ü"), async: true });
  expect(await read("override", "rlns_1/user/2")).toBeUndefined();
  expect(await read("override", "rlns_1/gone")).toBeUndefined();
  expect(await read("overridePatterns", "rlns_1")).toEqual({
    patterns: [record("rlor_2", "premium_*"), record("rlor_3", "*")],
  });
  await db.query("update ratelimit_overrides set deleted_at = 5");
  expect(await read("overridePatterns", "rlns_1")).toBeUndefined();
});

test("policy record equals the stored policy", async () => {
  const policy = {
    formatVersion: 1,
    apiId: "api_1",
    mode: "Audit",
    credentials: [{ in: "query", name: "k" }],
    rules: [{ access: "Key", creditCost: 0, ratelimits: [], path: { prefix: "/ü" } }],
    onStale: { afterMs: 1000, action: "Deny", denyAfterMs: 1000 },
    onCounterFailure: "Deny",
    onCreditFailure: "Allow",
    allowPaths: [],
  };
  await insert("policies", {
    id: "pol_1",
    api_id: "api_1",
    name: "a/b/c",
    uid: "u",
    generation: 3,
    version: 7,
    policy: JSON.stringify(policy),
  });
  const expected = { policyId: "pol_1", name: "a/b/c", apiId: "api_1", uid: "u", generation: 3, version: 7, policy };
  expect(await read("policy", "pol_1")).toEqual(expected);
  await db.query("update policies set deleted_at = 5");
  expect(await read("policy", "pol_1")).toBeUndefined();
});

test("projected key and identity records contain everything except meta", async () => {
  await insert("identities", { id: "id_1", external_id: "user", meta: JSON.stringify(META) });
  await aKey({ identity_id: "id_1", name: "one", meta: JSON.stringify(META) });
  const refs = [
    { workspaceId: WORKSPACE, kind: "key", id: "h1" },
    { workspaceId: WORKSPACE, kind: "identity", id: "id_1" },
  ] as const;
  const [key, identity] = await readRecords(db, refs);
  expect({ ...(key as object), meta: META }).toEqual(await read("key", "h1"));
  expect({ ...(identity as object), meta: META }).toEqual(await read("identity", "id_1"));
  expect([key, identity].some((record) => Object.hasOwn(record as object, "meta"))).toBe(false);
});

describe("every read", () => {
  test("record read is limited to the requested workspace", async () => {
    await aKey();
    await insert("roles", { id: "role_1", name: "one" });
    await insert("identities", { id: "id_1", external_id: "user" });
    await insert("ratelimit_namespaces", { id: "rlns_1", name: "one" });
    await insert("ratelimit_overrides", {
      id: "rlor_1",
      namespace_id: "rlns_1",
      identifier: "*",
      max_count: 1,
      duration_ms: 1,
    });
    const ids: Array<[Kind, string]> = [
      ["key", "h1"],
      ["role", "role_1"],
      ["identity", "id_1"],
      ["api", "api_1"],
      ["workspace", WORKSPACE],
      ["namespace", "rlns_1"],
      ["namespaceName", "one"],
      ["override", "rlns_1/*"],
      ["overridePatterns", "rlns_1"],
    ];
    for (const [kind, id] of ids) {
      expect(await read(kind, id), kind).toBeDefined();
      expect(await read(kind, id, OTHER), kind).toBeUndefined();
      // Also when both are requested at once, as by the relay.
      const both = [OTHER, WORKSPACE].map((workspaceId) => ({ workspaceId, kind, id }));
      const [theirs, ours] = await readRecords(db, both);
      expect([theirs, ours !== undefined], kind).toEqual([undefined, true]);
    }
  });

  test("record read keeps the order of mixed references and reports missing records", async () => {
    await aKey();
    const ref = (kind: RecordKind, id: string): RecordRef => ({ workspaceId: WORKSPACE, kind, id });
    const batch = await createPostgresSource(db).read([
      ref("role", "x"),
      ref("key", "h1"),
      ref("rootKey", "h"),
      ref("api", "api_1"),
      ref("key", "h1"),
    ]);
    expect(batch).toMatchObject({ usable: true });
    const states = batch.usable ? batch.records.map(({ state }) => state) : [];
    expect(states).toEqual(["gone", "found", "gone", "found", "found"]);
  });

  test("record listing returns each record once, and referenced records before the keys that refer to them", async () => {
    const [own, other] = [await insertWorkspace(db, "own"), await insertWorkspace(db, "other")];
    // A policy of each workspace is listed by its former id, too.
    const expected: Record<string, number> = { workspace: 4, api: 33, key: 59, policy: 32, role: 30, identity: 30 };
    for (const rows of [own, other]) {
      await insertKeys(db, rows, { to: 30 });
      await insertOtherKinds(db, rows, 15);
    }
    await db.query("update keys set deleted_at = 5 where id = $1", [keyRow(own, 7).id]);
    await db.query("update identities set deleted_at = 5 where external_id = 'u3'");
    await db.query("update ratelimit_namespaces set deleted_at = 5 where name = 's3'");
    const listed = async (max: number) => {
      const names: string[] = [];
      for (const kind of LISTED_KINDS) {
        let ofKind = 0;
        for (let after: string | undefined = ""; after !== undefined; ) {
          const page: Awaited<ReturnType<typeof listRecordRefs>> = await listRecordRefs(db, { kind, after, max });
          names.push(...page.refs.map((ref) => `${ref.kind} ${ref.workspaceId} ${ref.id}`));
          ofKind += page.refs.length;
          // A page and the count of what it covers are two statements, which must agree.
          expect(await countRecordRefs(db, { kind, after, upTo: page.cursor }), kind).toBe(page.refs.length);
          after = page.cursor;
        }
        if (expected[kind] !== undefined) expect(ofKind, kind).toBe(expected[kind]);
      }
      return names;
    };
    const all = await listed(1000);
    for (const max of [1, 2, 7]) expect(await listed(max)).toEqual(all);
    expect(new Set(all).size).toBe(all.length);
    expect(all).not.toContain(`key ${own.workspaceId} ${keyRow(own, 7).hash}`);
    expect(all.findIndex((name) => name.startsWith("key"))).toBeGreaterThan(
      all.findLastIndex((name) => name.startsWith("api")),
    );
  });
});
