import type { Unkey } from "@unkey/api";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Resources } from "../../api-server/test/resources.ts";
import { makeClient } from "./client.ts";
import { type Server, startServer } from "./server.ts";

/*
 * What a customer's backend does with the published client, with every field of a response in use: the types of the client
 * check this file, its schemas check the responses.
 */

let server: Server;
let resources: Resources;
let client: Unkey;
beforeAll(async () => {
  server = await startServer();
  const workspace = await server.workspace();
  resources = workspace.resources;
  ({ client } = makeClient(server.url, workspace.rootKey));
});
afterAll(() => server.close());

const HOUR_MS = 3_600_000;
const IN_2100 = 4_102_444_800_000;

test("published client reads a key with every field from all key procedures", async () => {
  const apiId = await resources.encryptingApi();
  const externalId = resources.name("user");
  const slug = resources.name("documents.read");
  const { data: role } = await client.permissions.createRole({ name: resources.name("role"), permissions: [slug] });
  const { data: identity } = await client.identities.createIdentity({
    externalId,
    meta: { plan: "pro", seats: 5, nested: { list: [1, null, "two"] } },
    ratelimits: [{ name: "shared", limit: 1000, duration: HOUR_MS, autoApply: true }],
  });
  const { data: made } = await client.keys.createKey({
    apiId,
    prefix: "prod",
    name: "Everything",
    externalId,
    meta: { team: "billing" },
    roles: [(await client.permissions.getRole({ role: role.roleId })).data.name],
    permissions: ["documents.write"],
    expires: IN_2100,
    credits: { remaining: 100, refill: { interval: "monthly", amount: 50, refillDay: 31 } },
    ratelimits: [{ name: "requests", limit: 10, duration: HOUR_MS, autoApply: true }],
    recoverable: true,
  });
  expect(made.key).toMatch(/^prod_/);

  const key = {
    keyId: made.keyId,
    start: made.key.slice(0, "prod_".length + 4),
    enabled: true,
    createdAt: expect.any(Number),
    name: "Everything",
    meta: { team: "billing" },
    expires: IN_2100,
    permissions: ["documents.write", slug].sort(),
    roles: [expect.any(String)],
    credits: { remaining: 100, refill: { interval: "monthly", amount: 50, refillDay: 31 } },
    identity: {
      id: identity.identityId,
      externalId,
      meta: { plan: "pro", seats: 5, nested: { list: [1, null, "two"] } },
      ratelimits: [{ id: expect.any(String), name: "shared", limit: 1000, duration: HOUR_MS, autoApply: true }],
    },
    ratelimits: [{ id: expect.any(String), name: "requests", limit: 10, duration: HOUR_MS, autoApply: true }],
  };
  expect((await client.keys.getKey({ keyId: made.keyId })).data).toEqual(key);
  expect((await client.keys.whoami({ key: made.key })).data).toEqual(key);
  expect((await client.keys.getKey({ keyId: made.keyId, decrypt: true })).data).toEqual({
    ...key,
    plaintext: made.key,
  });
  const { result } = await client.apis.listKeys({ apiId, externalId, decrypt: true });
  expect(result.data).toEqual([{ ...key, plaintext: made.key }]);

  const { data: verified } = await client.keys.verifyKey({
    key: made.key,
    tags: ["path=/orders"],
    permissions: `documents.write AND ${slug}`,
    credits: { cost: 2 },
    ratelimits: [
      { name: "requests", cost: 3 },
      { name: "burst", limit: 5, duration: 60_000 },
    ],
  });
  expect(verified).toMatchObject({
    valid: true,
    code: "VALID",
    keyId: made.keyId,
    credits: 98,
    meta: { team: "billing" },
  });
  expect(verified.ratelimits?.map(({ name, remaining, exceeded }) => ({ name, remaining, exceeded }))).toEqual([
    { name: "burst", remaining: 4, exceeded: false },
    { name: "requests", remaining: 7, exceeded: false },
    { name: "shared", remaining: 999, exceeded: false },
  ]);
});

test("published client reads every code of keys.verifyKey", async () => {
  const code = async (body: Record<string, unknown>, request: object = {}) => {
    const { key } = await resources.key(body);
    return (await client.keys.verifyKey({ key, ...request })).data.code;
  };
  expect(await code({})).toBe("VALID");
  expect(await code({ enabled: false })).toBe("DISABLED");
  expect(await code({ expires: 1 })).toBe("EXPIRED");
  expect(await code({}, { permissions: "admin" })).toBe("INSUFFICIENT_PERMISSIONS");
  expect(await code({}, { ratelimits: [{ name: "none", limit: 0, duration: HOUR_MS }] })).toBe("RATE_LIMITED");
  expect(await code({ credits: { remaining: 0 } })).toBe("USAGE_EXCEEDED");
  expect((await client.keys.verifyKey({ key: "nobody" })).data).toEqual({ valid: false, code: "NOT_FOUND" });
  const { apiId, key } = await resources.key();
  await server.query("update apis set ip_allow_list = '{192.0.2.1}' where id = $1", [apiId]);
  // Written directly to the database, so it arrives as a projected change.
  await expect.poll(async () => (await client.keys.verifyKey({ key })).data.code).toBe("FORBIDDEN");
});

test("published client reads null and empty fields after key updates", async () => {
  const { keyId } = await resources.key({
    name: "before",
    externalId: resources.name("user"),
    meta: { a: 1 },
    expires: IN_2100,
    credits: { remaining: 5, refill: { interval: "daily", amount: 1 } },
    roles: [(await resources.role()).name],
    permissions: ["one"],
    ratelimits: [{ name: "requests", limit: 1, duration: HOUR_MS }],
  });
  const nothing = { name: null, externalId: null, meta: null, expires: null, credits: null };
  expect(
    (await client.keys.updateKey({ keyId, ...nothing, roles: [], permissions: [], ratelimits: [], enabled: false }))
      .data,
  ).toEqual({});
  expect((await client.keys.getKey({ keyId })).data).toEqual({
    keyId,
    start: expect.any(String),
    enabled: false,
    createdAt: expect.any(Number),
    updatedAt: expect.any(Number),
  });
});

test("published client sets, increments and decrements credits, and sets null for unlimited", async () => {
  const { keyId } = await resources.key({ credits: { remaining: 5, refill: { interval: "daily", amount: 7 } } });
  const refill = { interval: "daily", amount: 7 };
  const change = async (operation: "set" | "increment" | "decrement", value: number | null) =>
    (await client.keys.updateCredits({ keyId, operation, value })).data;
  expect(await change("increment", 10)).toEqual({ remaining: 15, refill });
  expect(await change("decrement", 20)).toEqual({ remaining: 0, refill });
  expect(await change("set", 3)).toEqual({ remaining: 3, refill });
  expect(await change("set", null)).toEqual({ remaining: null });
});

test("published client iterates over all pages and returns each item once", async () => {
  const { resources, rootKey } = await server.workspace();
  const { client } = makeClient(server.url, rootKey);
  const apiId = await resources.api();
  const { namespace } = await resources.namespace();
  const made: Record<string, string[]> = { keys: [], overrides: [], identities: [], permissions: [], roles: [] };
  for (let i = 0; i < 5; i++) {
    made.keys?.push((await resources.key({ apiId })).keyId);
    made.identities?.push((await resources.identity()).identityId);
    made.permissions?.push((await resources.permission()).permissionId);
    made.roles?.push((await resources.role()).roleId);
    const body = { namespace, identifier: `someone${i}`, limit: 1, duration: HOUR_MS };
    made.overrides?.push((await client.ratelimit.setOverride(body)).data.overrideId);
  }
  const limit = 2;
  const walked: Record<string, string[]> = { keys: [], overrides: [], identities: [], permissions: [], roles: [] };
  for await (const { result } of await client.apis.listKeys({ apiId, limit })) {
    walked.keys?.push(...result.data.map(({ keyId }) => keyId));
  }
  for await (const { result } of await client.ratelimit.listOverrides({ namespace, limit })) {
    walked.overrides?.push(...result.data.map(({ overrideId }) => overrideId));
  }
  for await (const { result } of await client.identities.listIdentities({ limit })) {
    walked.identities?.push(...result.data.map(({ id }) => id));
  }
  for await (const { result } of await client.permissions.listPermissions({ limit })) {
    walked.permissions?.push(...result.data.map(({ id }) => id));
  }
  for await (const { result } of await client.permissions.listRoles({ limit })) {
    walked.roles?.push(...result.data.map(({ id }) => id));
  }
  for (const [what, ids] of Object.entries(made)) expect(walked[what], what).toEqual(ids.toSorted());
});

test("published client gets an atomic multiLimit denial", async () => {
  const override = await resources.override();
  const free = await resources.namespace();
  const batch = () =>
    client.ratelimit.multiLimit([
      { namespace: free.namespace, identifier: "a", limit: 10, duration: HOUR_MS },
      { namespace: override.namespace, identifier: override.identifier, limit: 1, duration: HOUR_MS, cost: 4 },
    ]);
  expect((await batch()).data).toMatchObject({
    passed: true,
    limits: [
      { namespace: free.namespace, identifier: "a", passed: true, limit: 10, remaining: 9 },
      { passed: true, limit: 5, remaining: 1, overrideId: override.overrideId },
    ],
  });
  expect((await batch()).data).toMatchObject({
    passed: false,
    limits: [
      { passed: true, remaining: 9 },
      { passed: false, remaining: 0 },
    ],
  });
});

test("published client reads results for new and existing migrated keys", async () => {
  const [apiId, migrationId] = [await resources.api(), await resources.migration()];
  const hash = "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=";
  const keys = [
    { hash, name: "hello", externalId: resources.name("user"), permissions: ["one"], roles: [resources.name("role")] },
  ];
  const { data } = await client.keys.migrateKeys({ migrationId, apiId, keys });
  expect(data).toEqual({ migrated: [{ hash, keyId: expect.any(String) }], failed: [] });
  expect((await client.keys.migrateKeys({ migrationId, apiId, keys })).data).toEqual({ migrated: [], failed: [hash] });
  expect((await client.keys.verifyKey({ key: "hello" })).data).toMatchObject({ code: "VALID", name: "hello" });
});

test("published client always sends key length 16 instead of the API default", async () => {
  const apiId = await resources.api();
  await server.query("update apis set default_byte_length = 64 where id = $1", [apiId]);
  const { key } = await resources.key({ apiId });
  expect(key.length).toBeGreaterThan(80);
  expect((await client.keys.createKey({ apiId })).data.key.length).toBeLessThan(30);
});
