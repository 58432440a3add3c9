import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { buildTestApp, type CallOptions, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
  await t.data("permissions.createRole", { name: "Editor" });
  await t.data("permissions.createPermission", { name: "documents.read", slug: "documents.read" });
});
afterAll(() => t.close());

const newSecret = () => `old_${randomBytes(12).toString("hex")}`;
const hashed = (secret: string) => ({ value: hashKey(secret), variant: "sha256_base64" });
const refused = async (items: readonly object[], options?: CallOptions) => {
  const { status, body } = await t.call("v1/migrations.createKeys", items, options);
  return `${status} ${body.error?.code} ${body.error?.message}`;
};
const verify = (key: string) => t.data("v1/keys.verifyKey", { key }, { rootKey: null });

test("v1 migrations.createKeys creates verifiable keys in request order with all settings", async () => {
  const [one, two] = [newSecret(), newSecret()];
  const whole = {
    name: "whole",
    ownerId: "Zoë",
    meta: { a: 1 },
    roles: ["EDITOR", "Editor"],
    permissions: ["Documents.Read"],
    remaining: 3,
    refill: { interval: "daily", amount: 1 },
    ratelimit: { type: "fast", limit: 2, refillRate: 9, refillInterval: 3_600_000, duration: 5 },
    environment: "prod",
  };
  const { keyIds } = await t.data("v1/migrations.createKeys", [
    { apiId, plaintext: one, hash: hashed("loses"), ...whole },
    { apiId, hash: hashed(two), start: "old_", enabled: false },
  ]);
  expect(await verify(one)).toMatchObject({
    code: "VALID",
    keyId: keyIds[0],
    ownerId: "Zoë",
    roles: ["Editor"],
    permissions: ["documents.read"],
    remaining: 2,
    ratelimit: { limit: 2, remaining: 1 },
    environment: "prod",
  });
  expect(await verify(two)).toMatchObject({ code: "DISABLED", keyId: keyIds[1] });
  expect(await t.data("v1/keys.getKey", { keyId: keyIds[0] })).toMatchObject({ start: "old_", ownerId: "Zoë" });
  // Without encryption the hash alone is stored.
  expect((await t.deps.db.query("select from key_secrets where key_id = $1", [keyIds[0]])).rowCount).toBe(0);
});

test("v1 migrations.createKeys encrypts plaintext for APIs with recoverable keys", async () => {
  const { apiId: vaulted } = await t.data("apis.createApi", { name: "vaulted" });
  await t.deps.db.query("update apis set key_encryption = true where id = $1", [vaulted]);
  const plaintext = newSecret();
  const { keyIds } = await t.data("v1/migrations.createKeys", [{ apiId: vaulted, plaintext }]);
  expect(await t.data("v1/keys.getKey", { keyId: keyIds[0], decrypt: true })).toMatchObject({ plaintext });
});

test("v1 migrations.createKeys creates no key if a reference is missing (412) or a hash exists (409)", async () => {
  const taken = newSecret();
  const { keyIds } = await t.data("v1/migrations.createKeys", [{ apiId, plaintext: taken }]);
  await t.data("v1/keys.deleteKey", { keyId: keyIds[0] });
  const other = await t.makeWorkspace();
  const theirs = await t.data("apis.createApi", { name: "theirs" }, { rootKey: other.rootKey });
  const fresh = { apiId, plaintext: newSecret(), ownerId: "never_made" };
  const missing = { apiId, plaintext: newSecret(), roles: ["nobody"], permissions: ["no.such"] };
  expect(await refused([fresh, missing])).toMatch(/^412 PRECONDITION_FAILED .*role nobody, permission no\.such/);
  expect(await refused([fresh, { apiId, hash: hashed(taken) }])).toMatch(/^409 CONFLICT/);
  expect(await refused([fresh, fresh])).toMatch(/^409 CONFLICT/);
  const theirKey = { apiId: theirs.apiId, plaintext: taken };
  expect(await refused([theirKey], { rootKey: other.rootKey })).toMatch(/^409 CONFLICT/);
  expect(await refused([fresh, theirKey])).toMatch(/^404 NOT_FOUND/);
  expect((await verify(fresh.plaintext)).code).toBe("NOT_FOUND");
  expect((await t.call("identities.getIdentity", { identity: "never_made" })).status).toBe(404);
});

test("v1 migrations.createKeys lists up to 20 missing permissions in its error", async () => {
  const permissions = Array.from({ length: 1_000 }, (_, i) => `missing.${i}`);
  const reply = await refused([{ apiId, plaintext: newSecret(), permissions }]);
  expect(reply).toMatch(/^412 .*permission missing\.0, .* and 980 more\.$/);
  expect(reply.length).toBeLessThan(1_000);
});

test("v1 migrations.createKeys rejects one of two concurrent imports with 409", async () => {
  const item = { apiId, plaintext: newSecret(), externalId: "both" };
  const replies = await Promise.all([1, 2].map(() => t.call("v1/migrations.createKeys", [item])));
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 409]);
});

test.each([
  { item: {}, place: "0.hash" },
  { item: { plaintext: "a", refill: { interval: "daily", amount: 1 } }, place: "0.refill" },
  { item: { plaintext: "a", remaining: 0 }, place: "0.remaining" },
  { item: { plaintext: "a", prefix: "123456789" }, place: "0.prefix" },
  { item: { plaintext: "a", ratelimit: { limit: 1, refillInterval: 1000 } }, place: "0.ratelimit.refillRate" },
  {
    item: { plaintext: "a", ratelimit: { limit: 1, refillRate: 1, refillInterval: 999 } },
    place: "0.ratelimit.refillInterval",
  },
  { item: { hash: { value: "a", variant: "md5" } }, place: "0.hash.variant" },
])("v1 migrations.createKeys with invalid $place gets 400 before authentication", async ({ item, place }) => {
  expect(await refused([{ apiId, ...item }], { rootKey: null })).toContain(`400 BAD_REQUEST ${place}: `);
});

test("v1 migrations.createKeys accepts up to 100 keys and requires the permission for each of their APIs", async () => {
  const many = (count: number) => Array.from({ length: count }, () => ({ apiId, plaintext: newSecret() }));
  expect(await refused(many(101), { rootKey: null })).toMatch(/^400 BAD_REQUEST/);
  expect((await t.data("v1/migrations.createKeys", many(100))).keyIds).toHaveLength(100);
  const rootKey = await t.rootKey([`api.${apiId}.create_key`]);
  const elsewhere = { apiId: "api_elsewhere", plaintext: newSecret() };
  expect(await refused([...many(1), elsewhere], { rootKey })).toMatch(/^403 INSUFFICIENT_PERMISSIONS/);
});
