import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Queryable } from "../../postgres/queryable.ts";
import { readRecords } from "../../test/harness/projected-records.ts";
import { buildTestApp, type TestApp } from "../test/app.ts";
import { findKey, type KeyRow, listKeyIdsOfOwner } from "./keys.ts";

/* The owner, the environment and the time of the last refill of a key: what v1 tells of it and v2 does not. */

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

/** As v1 makes it. */
async function aKey(
  { ownerId, environment }: { ownerId?: string; environment?: string } = {},
  body: object = {},
): Promise<{ keyId: string; key: string }> {
  const made = await t.data("keys.createKey", { apiId, ...body });
  await t.deps.db.query("update keys set owner_id = $2, environment = $3 where id = $1", [
    made.keyId,
    ownerId ?? null,
    environment ?? null,
  ]);
  return made;
}

const row = async (keyId: string): Promise<KeyRow | undefined> =>
  findKey(t.deps.db, { workspaceId: t.workspace.id, keyId });

async function hashOf(keyId: string): Promise<string> {
  return (await t.deps.db.query("select hash from keys where id = $1", [keyId])).rows[0].hash;
}

describe("a change of the externalId through v2", () => {
  test.each([
    { name: "another externalId clears the owner", body: { externalId: "user_2" }, owner: null },
    { name: "a null externalId clears the owner", body: { externalId: null }, owner: null },
    { name: "the same externalId keeps the owner", body: { externalId: "user_1" }, owner: "user_1" },
    { name: "no externalId keeps the owner", body: { name: "renamed", credits: { remaining: 3 } }, owner: "user_1" },
  ])("updateKey: $name, and the environment is always kept", async ({ body, owner }) => {
    const { keyId } = await aKey({ ownerId: "user_1", environment: "staging" }, { externalId: "user_1" });
    await t.data("keys.updateKey", { keyId, ...body });
    expect(await row(keyId)).toMatchObject({ owner_id: owner, environment: "staging" });
  });
});

test("key owner is kept after its identity is deleted", async () => {
  const { keyId } = await aKey({ ownerId: "leaver" }, { externalId: "leaver" });
  await t.data("identities.deleteIdentity", { identity: "leaver" });
  expect(await row(keyId)).toMatchObject({ owner_id: "leaver", external_id: null });
});

test("rerolled key keeps owner, environment and last refill", async () => {
  const credits = { remaining: 5, refill: { interval: "daily", amount: 5 } };
  const { keyId } = await aKey({ ownerId: "Zoë ✓", environment: "prod" }, { credits });
  t.advance(60_000);
  const { keyId: successor } = await t.data("keys.rerollKey", { keyId, expiration: 0 });
  const old = await row(keyId);
  expect(await row(successor)).toMatchObject({
    owner_id: "Zoë ✓",
    environment: "prod",
    last_refill_at: old?.last_refill_at,
  });
  expect(old?.last_refill_at).toBe(old?.created_at);
});

test("api-server key record includes owner and environment, but the gate record excludes them", async () => {
  const { keyId, key } = await aKey();
  // Cached before the change, which psql makes: its mark names the key.
  await t.data("keys.verifyKey", { key });
  await t.deps.db.query("delete from outbox");
  await t.deps.db.query("update keys set owner_id = 'o', environment = 'e' where id = $1", [keyId]);
  expect((await t.deps.db.query("select kind, id from outbox")).rows).toEqual([{ kind: "keyId", id: keyId }]);
  const ref = { workspaceId: t.workspace.id, kind: "key", id: await hashOf(keyId) } as const;
  t.deps.projection.drop([ref]);
  expect(await t.deps.projection.findKey(ref.workspaceId, ref.id)).toMatchObject({
    status: "found",
    value: { key: { ownerId: "o", environment: "e" } },
  });
  const [projected] = await readRecords(t.deps.db, [ref]);
  expect(projected).toMatchObject({ keyId });
  expect(projected).not.toHaveProperty("ownerId");
  expect(projected).not.toHaveProperty("environment");
});

describe("the last refill", () => {
  const daily = { interval: "daily", amount: 5 };
  const lastRefillAt = async (keyId: string) => (await row(keyId))?.last_refill_at;

  test("last refill of a key is unknown until a refill is configured", async () => {
    const { keyId } = await aKey({}, { credits: { remaining: 1 } });
    expect(await lastRefillAt(keyId)).toBeNull();
    t.advance(1000);
    await t.data("keys.updateKey", { keyId, credits: { refill: daily } });
    const set = await row(keyId);
    expect(set?.last_refill_at).toBe(set?.updated_at);
    t.advance(1000);
    await t.data("keys.updateKey", { keyId, credits: { refill: { ...daily, amount: 6 } } });
    expect(await lastRefillAt(keyId)).toBe(set?.last_refill_at);
    await t.data("keys.updateKey", { keyId, credits: { refill: { interval: "monthly", amount: 6, refillDay: 31 } } });
    expect(await lastRefillAt(keyId)).toBeGreaterThan(set?.last_refill_at ?? 0);
    await t.data("keys.updateKey", { keyId, credits: { refill: null } });
    expect(await lastRefillAt(keyId)).toBeNull();
  });
});

describe("the keys of an owner", () => {
  const ask = (asked: object) =>
    listKeyIdsOfOwner(t.deps.db, { workspaceId: t.workspace.id, cursor: "", rowsMax: 100, ownerId: "own", ...asked });

  test("keys of an owner include each key of its identity only once, ordered by id", async () => {
    const { apiId: other } = await t.data("apis.createApi", { name: "other" });
    const named = await aKey({ ownerId: "own" });
    const linked = await aKey({}, { externalId: "own" });
    const both = await aKey({ ownerId: "own" }, { externalId: "own" });
    const elsewhere = await aKey({ ownerId: "own" }, { apiId: other });
    const deleted = await aKey({ ownerId: "own" });
    await t.data("keys.deleteKey", { keyId: deleted.keyId });
    // Differs in case, or belongs to another owner now.
    await aKey({ ownerId: "Own" });
    await aKey({ ownerId: "someone" });
    const here = [named, linked, both].map(({ keyId }) => keyId).sort();
    const all = [...here, elsewhere.keyId].sort();
    expect(await ask({ apiId })).toEqual(here);
    expect(await ask({})).toEqual(all);
    expect(await ask({ rowsMax: 2 })).toEqual(all.slice(0, 2));
    expect(await ask({ cursor: all[1] })).toEqual(all.slice(1));
    const stranger = await t.makeWorkspace();
    expect(await ask({ workspaceId: stranger.id })).toEqual([]);

    await t.data("identities.deleteIdentity", { identity: "own" });
    expect(await ask({})).toEqual(all.filter((id) => id !== linked.keyId));
    await t.data("apis.deleteApi", { apiId: other });
    expect(await ask({})).toEqual([named, both].map(({ keyId }) => keyId).sort());
  });

  test("keys of an owner are found by indexes among thousands of keys", async () => {
    const tx = await t.deps.db.connect();
    try {
      await tx.query("begin");
      await tx.query(
        `insert into identities (id, workspace_id, external_id, created_at)
         select 'id_plan_' || n, $1, 'o' || n, 1 from generate_series(1, 3000) n`,
        [t.workspace.id],
      );
      await tx.query(
        `insert into keys (id, workspace_id, api_id, hash, start, owner_id, identity_id, created_at)
         select 'key_plan_' || md5(n::text), $1, $2, 'plan_' || n, 's', 'o' || n, 'id_plan_' || n, 1
           from generate_series(1, 3000) n`,
        [t.workspace.id, apiId],
      );
      await tx.query("analyze keys; analyze identities");
      const asked: Array<{ text: string; values: unknown[] }> = [];
      const listen = {
        query: async (query: { text: string; values: unknown[] }) => {
          asked.push(query);
          return { rows: [] };
        },
      } as unknown as Queryable;
      const of = { workspaceId: t.workspace.id, apiId, cursor: "", rowsMax: 100, ownerId: "o7" };
      await listKeyIdsOfOwner(listen, of);
      const [query] = asked;
      const { rows } = await tx.query<{ "QUERY PLAN": string }>(`explain ${query?.text}`, query?.values);
      const plan = rows.map((line) => line["QUERY PLAN"]).join("\n");
      expect(plan).toMatch(/keys_by_owner/);
      expect(plan).toMatch(/keys_by_identity/);
      expect(plan).not.toMatch(/Seq Scan on (keys|identities)/);
    } finally {
      await tx.query("rollback");
      tx.release();
    }
  });
});
