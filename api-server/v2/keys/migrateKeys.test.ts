import { hash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeId } from "../../../core/ids.ts";
import { hashKey } from "../../../core/keys/key-string.ts";
import type { MigrationAlgorithm } from "../../../core/keys/migration.ts";
import { buildTestApp, type TestApp, type Workspace } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
/** Migrations of the first workspace. */
let whole: string;
let prefixed: string;

async function makeMigration(algorithm: MigrationAlgorithm, workspace: Workspace = t.workspace): Promise<string> {
  const id = makeId("migration", randomBytes(16));
  await t.deps.db.query(
    "insert into migrations (id, workspace_id, name, algorithm, created_at) values ($1, $2, $1, $3, 0)",
    [id, workspace.id, algorithm],
  );
  return id;
}

beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
  whole = await makeMigration("sha256");
  prefixed = await makeMigration("prefixed");
});
afterAll(() => t.close());

const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const aSecret = (): string => randomBytes(12).toString("hex");
const longHash = (longToken: string): string => hash("sha256", longToken, "hex");

/** A key as other systems issue them, and the hash that they keep. */
function aPrefixedKey(prefix = "acme"): { key: string; hash: string; start: string } {
  const [short, long] = [aSecret().slice(0, 8), aSecret()];
  return { key: `${prefix}_${short}_${long}`, hash: longHash(long), start: `${prefix}_${short.slice(0, 4)}` };
}

const migrate = (keys: object[], body: object = {}) =>
  t.data("keys.migrateKeys", { migrationId: whole, apiId, keys, ...body });
const migratePrefixed = async (key: { hash: string }, body: object = {}): Promise<string> => {
  const { migrated } = await migrate([{ hash: key.hash, ...body }], { migrationId: prefixed });
  return migrated[0].keyId;
};
const verify = (key: string, migrationId?: string, rootKey?: string) =>
  t.data("keys.verifyKey", { key, migrationId }, rootKey === undefined ? {} : { rootKey });
const codeOf = async (...args: Parameters<typeof verify>): Promise<string> => (await verify(...args)).code;
const read = (keyId: string) => t.data("keys.getKey", { keyId });
const stored = async (keyId: string) => {
  const { rows } = await t.deps.db.query("select hash, start, pending_migration_id from keys where id = $1", [keyId]);
  return rows[0];
};

describe("keys.migrateKeys", () => {
  test("migrateKeys stores complete keys and creates identities, permissions and roles", async () => {
    await t.data("permissions.createPermission", { name: "Spelt", slug: "Spelt.Read" });
    await t.data("permissions.createRole", { name: "Known", permissions: ["known.read"] });
    const secret = aSecret();
    const settings = {
      name: "Imported",
      meta: { plan: "pro" },
      expires: 4_102_444_800_000,
      enabled: false,
      credits: { remaining: 7, refill: { interval: "daily", amount: 2 } },
    };
    const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: true };
    const { migrated, failed } = await migrate([
      {
        hash: hashKey(secret),
        ...settings,
        externalId: "kunde/ä 1",
        permissions: ["spelt.read", "SPELT.READ", "brand.new", "Brand.New"],
        roles: ["known", "Brand-New", "brand-new"],
        ratelimits: [{ ...limit, limit: 1 }, limit],
      },
    ]);
    expect(failed).toEqual([]);
    expect(migrated).toEqual([{ hash: hashKey(secret), keyId: expect.stringMatching(/^key_[a-zA-Z0-9]{16}$/) }]);
    expect(await read(migrated[0].keyId)).toEqual({
      keyId: migrated[0].keyId,
      start: "",
      createdAt: expect.any(Number),
      ...settings,
      permissions: ["Spelt.Read", "brand.new", "known.read"],
      roles: ["Brand-New", "Known"],
      identity: { id: expect.stringMatching(/^id_/), externalId: "kunde/ä 1" },
      ratelimits: [{ id: expect.stringMatching(/^rl_/), ...limit }],
    });
  });

  test("migrateKeys with only a hash creates a key without optional parts", async () => {
    const { migrated } = await migrate([{ hash: hashKey(aSecret()) }]);
    const { keyId } = migrated[0];
    expect(await read(keyId)).toEqual({ keyId, start: "", enabled: true, createdAt: expect.any(Number) });
    expect(await stored(keyId)).toMatchObject({ pending_migration_id: whole });
  });

  test("migrateKeys reports existing hashes as failed and leaves their keys unchanged", async () => {
    const stranger = await t.makeWorkspace();
    const as = { rootKey: stranger.rootKey };
    const { apiId: theirs } = await t.data("apis.createApi", { name: "theirs" }, as);
    const { key: foreign } = await t.data("keys.createKey", { apiId: theirs }, as);
    const { key: own, keyId } = await t.data("keys.createKey", { apiId, name: "own" });
    const { key: deleted, keyId: deletedId } = await t.data("keys.createKey", { apiId });
    await t.data("keys.deleteKey", { keyId: deletedId });
    const fresh = aSecret();
    const hashes = [foreign, fresh, own, deleted].map(hashKey);
    const outcome = await migrate(hashes.map((one) => ({ hash: one, name: "new", externalId: "for_known" })));
    expect(outcome).toEqual({
      migrated: [{ hash: hashKey(fresh), keyId: expect.any(String) }],
      failed: [foreign, own, deleted].map(hashKey),
    });
    expect((await read(keyId)).name).toBe("own");
    const again = await migrate(
      hashes.map((one) => ({ hash: one, externalId: "only_for_failed", permissions: ["only.for.failed"] })),
    );
    expect(again).toEqual({ migrated: [], failed: hashes });
    const { rowCount } = await t.deps.db.query(
      `select from identities where external_id = 'only_for_failed'
        union all select from permissions where slug = 'only.for.failed'`,
    );
    expect(rowCount).toBe(0);
  });

  test("migrateKeys uses the last of several entries with the same hash, even if their hexadecimal digits differ in case", async () => {
    const [secret, { hash: hex }] = [aSecret(), aPrefixedKey()];
    const twice = (first: string, last: string) => [
      { hash: first, name: "first", externalId: "first_only" },
      { hash: last, name: "last" },
    ];
    const { migrated } = await migrate(twice(hashKey(secret), hashKey(secret)));
    expect(migrated).toHaveLength(1);
    expect(await read(migrated[0].keyId)).not.toHaveProperty("identity");
    expect((await read(migrated[0].keyId)).name).toBe("last");
    const outcome = await migrate(twice(hex, hex.toUpperCase()), { migrationId: prefixed });
    expect(outcome.migrated).toEqual([{ hash: hex.toUpperCase(), keyId: expect.any(String) }]);
    expect(await stored(outcome.migrated[0].keyId)).toMatchObject({ hash: hex });
    expect((await migrate([{ hash: hex.toUpperCase() }], { migrationId: prefixed })).failed).toEqual([
      hex.toUpperCase(),
    ]);
  });

  test("migrateKeys imports thousands of different keys in one request", async () => {
    const secrets = many(2500, aSecret);
    const { migrated, failed } = await migrate(
      secrets.map((secret, i) => ({
        hash: hashKey(secret),
        name: `key ${i}`,
        externalId: `crowd_${i % 50}`,
        permissions: [`crowd.p${i % 7}`],
        roles: [`crowd-role-${i % 3}`],
        credits: i % 2 === 0 ? { remaining: i } : { remaining: null },
      })),
    );
    expect(failed).toEqual([]);
    expect(migrated.map((one: { hash: string }) => one.hash)).toEqual(secrets.map(hashKey));
    for (const i of [0, 999, 1000, 1001, 2499]) {
      expect(await read(migrated[i].keyId)).toMatchObject({
        name: `key ${i}`,
        identity: { externalId: `crowd_${i % 50}` },
        permissions: [`crowd.p${i % 7}`],
        roles: [`crowd-role-${i % 3}`],
        ...(i % 2 === 0 ? { credits: { remaining: i } } : {}),
      });
      expect(await codeOf(secrets[i] ?? "")).toBe(i === 0 ? "USAGE_EXCEEDED" : "VALID");
    }
  });

  test("concurrent migrateKeys calls share the objects that they create, and create each key only once", async () => {
    const secrets = many(40, aSecret);
    const entries = secrets.map((secret, i) => ({
      hash: hashKey(secret),
      externalId: `race_${i % 4}`,
      permissions: [`race.${i % 4}`],
      roles: [`race-${i % 4}`],
    }));
    const outcomes = await Promise.all(many(6, (i) => migrate(i % 2 === 0 ? entries : entries.toReversed())));
    expect(outcomes.reduce((sum, { migrated }) => sum + migrated.length, 0)).toBe(secrets.length);
    expect(outcomes.reduce((sum, { failed }) => sum + failed.length, 0)).toBe(5 * secrets.length);
    const { rows } = await t.deps.db.query(
      `select (select count(*) from identities where external_id like 'race\\_%') as identities,
              (select count(*) from permissions where slug like 'race.%') as permissions,
              (select count(*) from roles where name like 'race-%') as roles`,
    );
    expect(rows).toEqual([{ identities: 4, permissions: 4, roles: 4 }]);
  });

  test("migrateKeys checks for 403, 404 (API), 404 (migration) and 400 (refill) in this order", async () => {
    const stranger = await t.makeWorkspace();
    const foreign = await makeMigration("sha256", stranger);
    const bad = [{ hash: "abc", credits: { remaining: null, refill: { interval: "daily", amount: 1 } } }];
    const kind = async (body: object, rootKey?: string) => {
      const reply = await t.call(
        "keys.migrateKeys",
        { migrationId: whole, apiId, keys: bad, ...body },
        rootKey === undefined ? {} : { rootKey },
      );
      return [reply.status, reply.body.error.type.split("/").at(-1), reply.body.error.errors?.[0].location];
    };
    const reader = await t.rootKey(["api.*.read_key"]);
    const missing = { apiId: "api_missing0", migrationId: "mig_missing" };
    expect(await kind(missing, reader)).toEqual([403, "forbidden", undefined]);
    expect(await kind(missing)).toEqual([404, "api_not_found", undefined]);
    expect(await kind({ migrationId: "mig_missing" })).toEqual([404, "migration_not_found", undefined]);
    expect(await kind({ migrationId: foreign })).toEqual([404, "migration_not_found", undefined]);
    expect(await kind({ keys: [{ hash: "abc" }, ...bad] })).toEqual([
      400,
      "invalid_input",
      "body.keys[1].credits.refill",
    ]);
    const { apiId: gone } = await t.data("apis.createApi", { name: "gone" });
    await t.data("apis.deleteApi", { apiId: gone });
    expect(await kind({ apiId: gone })).toEqual([404, "api_not_found", undefined]);
    expect(await migrate([{ hash: hashKey(aSecret()) }])).toHaveProperty("migrated");
  });

  test("migrateKeys requires only create_key on the API", async () => {
    const rootKey = await t.rootKey([`api.${apiId}.create_key`]);
    const keys = [{ hash: hashKey(aSecret()), externalId: "new_one", permissions: ["new.one"], roles: ["new-one"] }];
    expect((await t.call("keys.migrateKeys", { migrationId: whole, apiId, keys }, { rootKey })).status).toBe(200);
  });

  test.each([
    { name: "no keys", body: { keys: [] }, status: 400 },
    { name: "a hash of 2", body: { keys: [{ hash: "ab" }] }, status: 400 },
    { name: "a hash of 3", body: { keys: [{ hash: "ab3" }] }, status: 200 },
    { name: "a hash of 256", body: { keys: [{ hash: "h".repeat(256) }] }, status: 400 },
    { name: "no hash", body: { keys: [{}] }, status: 400 },
    { name: "a member that is not known", body: { keys: [{ hash: "abcd", nope: 1 }] }, status: 400 },
    { name: "an empty externalId", body: { keys: [{ hash: "abcde", externalId: "" }] }, status: 400 },
    { name: "an empty name", body: { keys: [{ hash: "abcde", name: "" }] }, status: 400 },
    { name: "101 roles", body: { keys: [{ hash: "abcde", roles: many(101, (i) => `r${i}`) }] }, status: 400 },
    { name: "a slug with a space", body: { keys: [{ hash: "abcde", permissions: ["a b"] }] }, status: 400 },
    {
      name: "more than 100,000 parts in all",
      body: { keys: many(101, (i) => ({ hash: `bulk${i}`, permissions: many(1000, (p) => `p${p}`) })) },
      status: 400,
    },
    { name: "a migration id of 2", body: { migrationId: "mi", keys: [{ hash: "abcde" }] }, status: 400 },
  ])("migrateKeys with $name returns $status", async ({ body, status }) => {
    const reply = await t.call("keys.migrateKeys", { migrationId: whole, apiId, ...body });
    expect(reply.status, JSON.stringify(reply.body)).toBe(status);
  });

  test("migrateKeys writes audit entries for all created objects under one correlation id", async () => {
    const workspace = await t.makeWorkspace();
    const as = { rootKey: workspace.rootKey };
    const { apiId: own } = await t.data("apis.createApi", { name: "audited" }, as);
    const migrationId = await makeMigration("sha256", workspace);
    const before = (await t.audit(workspace.id)).length;
    const secrets = many(2, aSecret);
    const keys = secrets.map((secret) => ({
      hash: hashKey(secret),
      externalId: "u",
      permissions: ["one.slug"],
      roles: ["one"],
    }));
    await t.data("keys.migrateKeys", { migrationId, apiId: own, keys }, as);
    const rows = (await t.audit(workspace.id)).slice(before);
    expect(rows.map(({ event }) => event)).toEqual([
      "authorization.connect_permission_and_key",
      "authorization.connect_permission_and_key",
      "authorization.connect_role_and_key",
      "authorization.connect_role_and_key",
      "identity.create",
      "key.create",
      "key.create",
      "permission.create",
      "role.create",
    ]);
    expect(new Set(rows.map(({ correlation_id }) => correlation_id)).size).toBe(1);
    const count = (await t.audit(workspace.id)).length;
    await t.data("keys.migrateKeys", { migrationId, apiId: own, keys }, as);
    expect(await t.audit(workspace.id)).toHaveLength(count);
  });
});

describe("a key of a sha256 migration", () => {
  test("sha256-migrated key verifies immediately with and without migrationId", async () => {
    const secret = aSecret();
    expect(await codeOf(secret)).toBe("NOT_FOUND");
    const { migrated } = await migrate([{ hash: hashKey(secret) }]);
    expect(await codeOf(secret)).toBe("VALID");
    expect(await codeOf(secret, whole)).toBe("VALID");
    expect(await codeOf(`${secret}x`, whole)).toBe("NOT_FOUND");
    expect((await read(migrated[0].keyId)).start).toBe("");
  });

  test("sha256-migrated key is not found by the hash of its last part", async () => {
    const key = aPrefixedKey();
    await migrate([{ hash: key.hash }]);
    for (const migrationId of [whole, prefixed]) expect(await codeOf(key.key, migrationId)).toBe("NOT_FOUND");
  });
});

describe("a key of a prefixed migration", () => {
  test("prefixed migrated key verifies with migrationId first and without it afterwards", async () => {
    const { key, start, ...imported } = aPrefixedKey("acme_prod");
    const keyId = await migratePrefixed(imported, { name: "Moved", permissions: ["documents.read"] });
    expect(await codeOf(key)).toBe("NOT_FOUND");
    expect(await stored(keyId)).toEqual({ hash: imported.hash, start: "", pending_migration_id: prefixed });
    expect(await verify(key, prefixed)).toMatchObject({ code: "VALID", keyId, name: "Moved" });
    expect(await stored(keyId)).toEqual({ hash: hashKey(key), start, pending_migration_id: null });
    expect(await codeOf(key)).toBe("VALID");
    expect(await codeOf(key, prefixed)).toBe("VALID");
    expect(await codeOf(key, "mig_anything")).toBe("VALID");
    expect((await read(keyId)).start).toBe(start);
  });

  test("prefixed migrated key writes outbox entries for its key and old hash", async () => {
    const { key, hash: imported } = aPrefixedKey();
    const keyId = await migratePrefixed({ hash: imported });
    await t.deps.db.query("delete from outbox");
    await verify(key, prefixed);
    const { rows } = await t.deps.db.query("select kind, id from outbox order by seq");
    expect(rows).toEqual(
      expect.arrayContaining([
        { kind: "key", id: imported },
        { kind: "keyId", id: keyId },
      ]),
    );
  });

  test("first verification of a prefixed migrated key completes its migration, even with code DISABLED", async () => {
    const disabled = aPrefixedKey();
    const keyId = await migratePrefixed(disabled, { enabled: false });
    expect(await codeOf(disabled.key, prefixed)).toBe("DISABLED");
    expect(await stored(keyId)).toMatchObject({ pending_migration_id: null });
    const spent = aPrefixedKey();
    await migratePrefixed(spent, { credits: { remaining: 1 } });
    expect(await verify(spent.key, prefixed)).toMatchObject({ code: "VALID", credits: 0 });
    expect(await verify(spent.key)).toMatchObject({ code: "USAGE_EXCEEDED", credits: 0 });
  });

  test("prefixed migrated key is found by many concurrent first verifications", async () => {
    const { key, ...imported } = aPrefixedKey();
    const keyId = await migratePrefixed(imported, { credits: { remaining: 20 } });
    const verdicts = await Promise.all(many(20, () => verify(key, prefixed)));
    expect(new Set(verdicts.map(({ code }) => code))).toEqual(new Set(["VALID"]));
    expect(await stored(keyId)).toMatchObject({ hash: hashKey(key) });
    expect(await verify(key)).toMatchObject({ code: "USAGE_EXCEEDED", credits: 0 });
  });

  test("prefixed migrated key is found despite a negative cache entry", async () => {
    const { key, start, ...imported } = aPrefixedKey();
    const keyId = await migratePrefixed(imported);
    expect(await codeOf(key)).toBe("NOT_FOUND");
    // As another replica does it, of which nothing has been heard here.
    await t.deps.db.query("update keys set hash = $2, start = $3, pending_migration_id = null where id = $1", [
      keyId,
      hashKey(key),
      start,
    ]);
    expect(await codeOf(key, prefixed)).toBe("VALID");
  });

  test.each([
    { name: "no migration", migrationId: () => undefined },
    { name: "an unknown migration", migrationId: () => "mig_unknown" },
    { name: "an empty id", migrationId: () => "" },
    { name: "another migration of the workspace", migrationId: () => makeMigration("prefixed") },
    { name: "a sha256 migration", migrationId: () => whole },
  ])("prefixed migrated key is neither found nor changed with $name", async ({ migrationId }) => {
    const { key, ...imported } = aPrefixedKey();
    const keyId = await migratePrefixed(imported);
    expect(await codeOf(key, await migrationId())).toBe("NOT_FOUND");
    expect(await stored(keyId)).toMatchObject({ hash: imported.hash, pending_migration_id: prefixed });
  });

  test.each(["nothing", "acme_nothing", "acme_short_", "_", "__"])(
    "prefixed migrated key does not match the key string %j, and no error occurs",
    async (key) => {
      expect(await codeOf(key, prefixed)).toBe("NOT_FOUND");
    },
  );

  test("prefixed migrated key is rewritten only for callers permitted to verify it", async () => {
    const { key, ...imported } = aPrefixedKey();
    const keyId = await migratePrefixed(imported);
    const stranger = await t.makeWorkspace();
    const theirs = await makeMigration("prefixed", stranger);
    for (const migrationId of [prefixed, theirs]) {
      expect(await codeOf(key, migrationId, stranger.rootKey)).toBe("NOT_FOUND");
    }
    const { apiId: other } = await t.data("apis.createApi", { name: "other" });
    const otherApi = await t.rootKey([`api.${other}.verify_key`]);
    expect(await codeOf(key, prefixed, otherApi)).toBe("NOT_FOUND");
    const reply = await t.call(
      "keys.verifyKey",
      { key, migrationId: prefixed },
      { rootKey: await t.rootKey(["api.*.read_key"]) },
    );
    expect(reply.status).toBe(403);
    expect(await stored(keyId)).toMatchObject({ hash: imported.hash });
    const thisApi = await t.rootKey([`api.${apiId}.verify_key`]);
    expect(await codeOf(key, prefixed, thisApi)).toBe("VALID");
  });

  test("prefixed migrated key is not found after the key or its API is deleted", async () => {
    const [one, other] = [aPrefixedKey(), aPrefixedKey()];
    const keyId = await migratePrefixed(one);
    await t.data("keys.deleteKey", { keyId });
    expect(await codeOf(one.key, prefixed)).toBe("NOT_FOUND");
    const { apiId: doomed } = await t.data("apis.createApi", { name: "doomed" });
    await migrate([{ hash: other.hash }], { migrationId: prefixed, apiId: doomed });
    await t.data("apis.deleteApi", { apiId: doomed });
    expect(await codeOf(other.key, prefixed)).toBe("NOT_FOUND");
  });

  test("prefixed migrated key that equals a key of another workspace is not found", async () => {
    const { key, ...imported } = aPrefixedKey();
    const keyId = await migratePrefixed(imported);
    const stranger = await t.makeWorkspace();
    const as = { rootKey: stranger.rootKey };
    const { apiId: theirs } = await t.data("apis.createApi", { name: "theirs" }, as);
    await t.data(
      "keys.migrateKeys",
      { migrationId: await makeMigration("sha256", stranger), apiId: theirs, keys: [{ hash: hashKey(key) }] },
      as,
    );
    expect(await codeOf(key, prefixed)).toBe("NOT_FOUND");
    expect(await stored(keyId)).toMatchObject({ hash: imported.hash, pending_migration_id: prefixed });
    expect(await codeOf(key, undefined, stranger.rootKey)).toBe("VALID");
  });

  test("prefixed migrated key is looked up before the syntax of the permission query is checked", async () => {
    const { key, ...imported } = aPrefixedKey();
    await migratePrefixed(imported);
    const ask = (of: string) => t.call("keys.verifyKey", { key: of, migrationId: prefixed, permissions: "a AND" });
    expect((await ask(`${key}x`)).body.data).toEqual({ valid: false, code: "NOT_FOUND" });
    expect((await ask(key)).status).toBe(400);
  });
});
