import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp, type Workspace } from "./app.ts";

let t: TestApp;
let stranger: Workspace;
let theirs: { apiId: string; keyId: string; key: string; identityId: string };
beforeAll(async () => {
  t = await buildTestApp();
  stranger = await t.makeWorkspace();
  const { apiId } = await t.data("apis.createApi", { name: "theirs" });
  const { keyId, key } = await t.data("keys.createKey", {
    apiId,
    externalId: "their_user",
    permissions: ["their.slug"],
  });
  await t.data("permissions.createRole", { name: "their role" });
  const { id } = (await t.data("keys.getKey", { keyId })).identity;
  theirs = { apiId, keyId, key, identityId: id };
});
afterAll(() => t.close());

/** Every procedure that takes an id, with one that exists elsewhere and one that exists nowhere. */
const CASES = [
  { path: "apis.getApi", body: (id: string) => ({ apiId: id }), kind: "api" },
  { path: "apis.updateApi", body: (id: string) => ({ apiId: id, name: "mine" }), kind: "api" },
  { path: "apis.deleteApi", body: (id: string) => ({ apiId: id }), kind: "api" },
  { path: "apis.listKeys", body: (id: string) => ({ apiId: id }), kind: "api" },
  { path: "keys.createKey", body: (id: string) => ({ apiId: id }), kind: "api" },
  { path: "keys.getKey", body: (id: string) => ({ keyId: id }), kind: "key" },
  { path: "keys.updateKey", body: (id: string) => ({ keyId: id, enabled: false }), kind: "key" },
  { path: "keys.deleteKey", body: (id: string) => ({ keyId: id, permanent: true }), kind: "key" },
  { path: "identities.getIdentity", body: (id: string) => ({ identity: id }), kind: "identity" },
] as const;

test.each(CASES)("$path answers for another workspace's id as for none", async ({ path, body, kind }) => {
  const foreign = { api: theirs.apiId, key: theirs.keyId, identity: theirs.identityId }[kind];
  const missing = foreign.replace(/.{8}$/, "ZZZZZZZZ");
  const [one, other] = await Promise.all(
    [foreign, missing].map((id) => t.call(path, body(id), { rootKey: stranger.rootKey })),
  );
  expect(one?.status).toBe(404);
  expect(JSON.stringify(one?.body.error).replaceAll(foreign, missing)).toBe(JSON.stringify(other?.body.error));
});

test("nothing of it has been touched", async () => {
  expect(await t.data("keys.getKey", { keyId: theirs.keyId })).toMatchObject({ enabled: true });
  expect(await t.data("apis.getApi", { apiId: theirs.apiId })).toMatchObject({ name: "theirs" });
  expect((await t.data("keys.verifyKey", { key: theirs.key })).code).toBe("VALID");
});

test("externalIds, slugs and role names of another workspace are not there", async () => {
  const as = { rootKey: stranger.rootKey };
  const { apiId } = await t.data("apis.createApi", { name: "own" }, as);
  expect((await t.call("identities.getIdentity", { identity: "their_user" }, as)).status).toBe(404);
  const role = await t.call("keys.createKey", { apiId, roles: ["their role"] }, as);
  expect(role.body.error.type).toBe("https://docs.test/errors/role_not_found");
  const { keyId } = await t.data(
    "keys.createKey",
    { apiId, externalId: "their_user", permissions: ["their.slug"] },
    as,
  );
  const { identity } = await t.data("keys.getKey", { keyId }, as);
  expect(identity.id).not.toBe(theirs.identityId);
  const { rows } = await t.deps.db.query("select workspace_id from permissions where slug = 'their.slug'");
  expect(rows).toHaveLength(2);
});
