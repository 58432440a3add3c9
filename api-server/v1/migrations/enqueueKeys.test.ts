import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { buildTestApp, type CallOptions, type TestApp } from "../../test/app.ts";
import { openKeyQueue, type TestKeyQueue } from "../../test/key-queue.ts";

let t: TestApp;
let queue: TestKeyQueue;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  queue = openKeyQueue(t.deps);
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
  await t.data("permissions.createRole", { name: "Editor" });
  await t.data("permissions.createPermission", { name: "documents.read", slug: "documents.read" });
});
afterAll(() => t.close());

const newSecret = () => `old_${randomBytes(12).toString("hex")}`;
const hashed = (secret: string) => ({ value: hashKey(secret), variant: "sha256_base64" });
const bodyOf = (keys: readonly object[], rest: object = {}) => ({ migrationId: "mig", apiId, keys, ...rest });
const enqueue = (keys: readonly object[], rest?: object, options?: CallOptions) =>
  t.call("v1/migrations.enqueueKeys", bodyOf(keys, rest), options);
const refused = async (...given: Parameters<typeof enqueue>) => {
  const { status, body } = await enqueue(...given);
  return `${status} ${body.error?.code} ${body.error?.message}`;
};
const verify = (key: string) => t.data("v1/keys.verifyKey", { key }, { rootKey: null });
const waiting = async () => Number((await t.deps.db.query("select from queued_keys")).rowCount);

test("v1 migrations.enqueueKeys accepts keys immediately, and once created, they verify with all settings", async () => {
  const [one, two] = [newSecret(), newSecret()];
  const whole = {
    name: "whole",
    ownerId: "Zoë",
    meta: { a: 1, __proto__: undefined, ü: ["\u{1f511}"] },
    roles: ["EDITOR", "Editor"],
    permissions: ["Documents.Read"],
    remaining: 3,
    refill: { interval: "monthly", amount: 1, refillDay: 31 },
    ratelimit: { type: "fast", limit: 2, duration: 3_600_000 },
    environment: "prod",
    expires: 4_102_444_800_000,
  };
  const reply = await enqueue([
    { plaintext: one, hash: hashed("loses"), ...whole },
    { hash: hashed(two), start: "old_", enabled: false, apiId: "api_ignored", externalId: "ignored" },
  ]);
  expect([reply.status, reply.body]).toEqual([202, {}]);
  expect((await verify(one)).code).toBe("NOT_FOUND");

  await queue.work();
  expect(await waiting()).toBe(0);
  const verified = await verify(one);
  expect(verified).toMatchObject({
    code: "VALID",
    name: "whole",
    ownerId: "Zoë",
    meta: { a: 1, ü: ["\u{1f511}"] },
    roles: ["Editor"],
    permissions: ["documents.read"],
    remaining: 2,
    // autoApply: the limit counts without being named.
    ratelimit: { limit: 2, remaining: 1 },
    environment: "prod",
    expires: 4_102_444_800_000,
  });
  expect(await t.data("v1/keys.getKey", { keyId: verified.keyId })).toMatchObject({
    start: "old_",
    refill: { interval: "monthly", amount: 1, refillDay: 31 },
  });
  expect(await t.data("keys.verifyKey", { key: one })).toMatchObject({ code: "VALID", keyId: verified.keyId });
  const disabled = await verify(two);
  expect(disabled).toMatchObject({ code: "DISABLED" });
  expect(await t.data("keys.getKey", { keyId: disabled.keyId })).not.toHaveProperty("identity");
  expect(await t.data("keys.verifyKey", { key: two })).toMatchObject({ code: "DISABLED", keyId: disabled.keyId });
});

test("v1 migrations.enqueueKeys is recorded in the audit log under its caller, even if the root key is revoked afterwards", async () => {
  const rootKey = await t.rootKey([`api.${apiId}.create_key`], { name: "importer" });
  const reply = await enqueue([{ hash: hashed(newSecret()), name: "audited" }], {}, { rootKey });
  await t.deps.db.query("update root_keys set deleted_at = 1, enabled = false where hash = $1", [hashKey(rootKey)]);
  await t.deps.db.query("update workspaces set enabled = false where id = $1", [t.workspace.id]);
  await queue.work();
  await t.deps.db.query("update workspaces set enabled = true where id = $1", [t.workspace.id]);
  const rows = (await t.audit()).filter(({ request_id }) => request_id === reply.headers["x-request-id"]);
  const [row, accepted] = rows.sort((a, b) => (a.event < b.event ? -1 : 1));
  expect(accepted).toMatchObject({ event: "key.enqueue", targets: [{ type: "api", id: apiId }, { id: "mig" }] });
  expect(row).toMatchObject({ event: "key.create", actor: { type: "rootkey", name: "importer" } });
  expect(row?.targets).toMatchObject([
    { type: "key", name: "audited" },
    { type: "api", id: apiId },
  ]);
  expect(row?.remote_ip).not.toBeNull();
});

test("v1 migrations.enqueueKeys attributes each key to its own call and API", async () => {
  const { apiId: another } = await t.data("apis.createApi", { name: "another" });
  const calls: { name: string; requestId: unknown; apiId: string }[] = [];
  for (const [name, id] of [
    ["first", apiId],
    ["second", another],
  ] as const) {
    const rootKey = await t.rootKey([`api.${id}.create_key`], { name });
    const { headers } = await enqueue([{ hash: hashed(newSecret()), name }], { apiId: id }, { rootKey });
    calls.push({ name, requestId: headers["x-request-id"], apiId: id });
  }
  await queue.work();
  const created = (await t.audit()).filter(({ event }) => event === "key.create");
  for (const { name, requestId, apiId: id } of calls) {
    const rows = created.filter((row) => row.request_id === requestId);
    expect(rows).toMatchObject([{ actor: { name }, targets: [{ name }, { type: "api", id }] }]);
  }
});

test("v1 migrations.enqueueKeys with plaintext requires encrypt_key and encrypts recoverable keys", async () => {
  const { apiId: vaulted } = await t.data("apis.createApi", { name: "vaulted" });
  await t.deps.db.query("update apis set key_encryption = true where id = $1", [vaulted]);
  const plaintext = newSecret();
  const createOnly = await t.rootKey([`api.${vaulted}.create_key`]);
  const [plain, hash] = [{ plaintext }, { hash: hashed(newSecret()) }];
  expect(await refused([hash, plain], { apiId: vaulted }, { rootKey: createOnly })).toMatch(
    /^403 INSUFFICIENT_PERMISSIONS .*encrypt_key/,
  );
  expect((await enqueue([hash], { apiId: vaulted }, { rootKey: createOnly })).status).toBe(202);
  const encryptOnly = await t.rootKey([`api.${vaulted}.encrypt_key`]);
  expect(await refused([plain], { apiId: vaulted }, { rootKey: encryptOnly })).toMatch(/^403 .*create_key/);
  const both = await t.rootKey([`api.${vaulted}.create_key`, `api.${vaulted}.encrypt_key`]);
  expect((await enqueue([plain], { apiId: vaulted }, { rootKey: both })).status).toBe(202);
  await queue.work();
  const { keyId } = await verify(plaintext);
  expect(await t.data("v1/keys.getKey", { keyId, decrypt: true })).toMatchObject({ plaintext });
});

test.each([
  { body: { migrationId: "" }, place: "migrationId" },
  { body: { migrationId: "m".repeat(256) }, place: "migrationId" },
  { body: { apiId: 7 }, place: "apiId" },
  { body: { keys: "none" }, place: "keys" },
  { body: { keys: Array.from({ length: 101 }, () => ({ plaintext: "a" })) }, place: "keys" },
  { item: {}, place: "keys.1.hash" },
  { item: { hash: { value: "a" } }, place: "keys.1.hash.variant" },
  { item: { plaintext: "a", refill: { interval: "daily", amount: 1 } }, place: "keys.1.refill" },
  {
    item: { plaintext: "a", remaining: 1, refill: { interval: "daily", amount: 1, refillDay: 3 } },
    place: "keys.1.refill.refillDay",
  },
  { item: { plaintext: "a", remaining: 0 }, place: "keys.1.remaining" },
  {
    item: { plaintext: "a", ratelimit: { limit: 1, refillRate: 1, refillInterval: 1000 } },
    place: "keys.1.ratelimit.duration",
  },
  { item: { plaintext: "a", ratelimit: { limit: 1, duration: 999 } }, place: "keys.1.ratelimit.duration" },
])(
  "v1 migrations.enqueueKeys with invalid $place gets 400 before authentication: $item $body",
  async ({ item, body = {}, place }) => {
    const keys = [{ plaintext: "b" }, ...(item === undefined ? [] : [item])];
    expect(await refused(keys, body, { rootKey: null })).toContain(`400 BAD_REQUEST ${place}: `);
  },
);

test("v1 migrations.enqueueKeys for a missing API, or one of another workspace, gets 404 and queues nothing", async () => {
  const other = await t.makeWorkspace();
  const theirs = await t.data("apis.createApi", { name: "theirs" }, { rootKey: other.rootKey });
  const gone = await t.data("apis.createApi", { name: "gone" });
  await t.data("apis.deleteApi", { apiId: gone.apiId });
  for (const id of [theirs.apiId, gone.apiId, "api_none"]) {
    expect(await refused([{ plaintext: newSecret() }], { apiId: id })).toMatch(/^404 NOT_FOUND/);
  }
  expect(await refused([{ plaintext: "a", meta: { big: "x".repeat(1_100_000) } }])).toMatch(/^400 .*keys\.0\.meta: /);
  expect(await waiting()).toBe(0);
});

test("v1 migrations.enqueueKeys accepts 0 to 100 keys", async () => {
  const secrets = Array.from({ length: 100 }, newSecret);
  expect((await enqueue(secrets.map((plaintext) => ({ plaintext })))).status).toBe(202);
  expect((await enqueue([])).status).toBe(202);
  expect(await waiting()).toBe(100);
  await queue.work();
  for (const secret of secrets) expect((await verify(secret)).code).toBe("VALID");
});
