import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const HOUR_MS = 3_600_000;
const limit = { name: "requests", limit: 1, duration: HOUR_MS, autoApply: true };

test("keys of a deleted identity still work, without the identity's limits", async () => {
  const { identityId } = await t.data("identities.createIdentity", { externalId: "leaving", ratelimits: [limit] });
  const { apiId } = await t.data("apis.createApi", { name: "orders" });
  const { keyId, key } = await t.data("keys.createKey", { apiId, externalId: "leaving" });
  const verify = () => t.data("keys.verifyKey", { key });
  expect(await verify()).toMatchObject({ code: "VALID", identity: { id: identityId } });
  expect((await verify()).code).toBe("RATE_LIMITED");

  expect(await t.data("identities.deleteIdentity", { identity: "leaving" })).toEqual({});
  for (let i = 0; i < 2; i++) {
    const response = await verify();
    expect(response.code).toBe("VALID");
    expect(response).not.toHaveProperty("identity");
    expect(response).not.toHaveProperty("ratelimits");
  }
  // Nor can one of its limits be asked for by name.
  const named = await t.call("keys.verifyKey", { key, ratelimits: [{ name: "requests" }] });
  expect(named.status).toBe(412);
  expect(await t.data("keys.getKey", { keyId })).not.toHaveProperty("identity");
  expect(await t.data("apis.listKeys", { apiId, externalId: "leaving" })).toEqual([]);
  const { rowCount } = await t.deps.db.query("select from ratelimits where identity_id = $1", [identityId]);
  expect(rowCount).toBe(0);
});

test("deleteIdentity frees the externalId, but an identity that gets it later does not inherit the keys", async () => {
  const { apiId } = await t.data("apis.createApi", { name: "orders" });
  const old = await t.data("keys.createKey", { apiId, externalId: "again" });
  const { id } = await t.data("identities.getIdentity", { identity: "again" });
  await t.data("identities.deleteIdentity", { identity: id });
  const { identityId } = await t.data("identities.createIdentity", { externalId: "again" });
  expect(identityId).not.toBe(id);
  const own = await t.data("keys.createKey", { apiId, externalId: "again" });
  const keyIds = (await t.data("apis.listKeys", { apiId, externalId: "again" })).map(
    ({ keyId }: { keyId: string }) => keyId,
  );
  expect(keyIds).toEqual([own.keyId]);
  expect(await t.data("keys.getKey", { keyId: old.keyId })).not.toHaveProperty("identity");
});

test("deleted identity gets 404 by id and externalId in every procedure", async () => {
  const { identityId } = await t.data("identities.createIdentity", { externalId: "gone" });
  await t.data("identities.deleteIdentity", { identity: identityId });
  for (const path of ["getIdentity", "updateIdentity", "deleteIdentity"]) {
    for (const identity of ["gone", identityId]) {
      const { status, body } = await t.call(`identities.${path}`, { identity });
      expect([status, body.error.type]).toEqual([404, "https://docs.test/errors/identity_not_found"]);
    }
  }
});

test("deleteIdentity writes audit entries for the identity and its limits under one correlation id", async () => {
  const { id: workspaceId, rootKey } = await t.makeWorkspace();
  const ratelimits = [limit, { ...limit, name: "other" }];
  await t.data("identities.createIdentity", { externalId: "logged", ratelimits }, { rootKey });
  const before = (await t.audit(workspaceId)).length;
  t.advance(1);
  await t.data("identities.deleteIdentity", { identity: "logged" }, { rootKey });
  const rows = (await t.audit(workspaceId)).slice(before);
  expect(rows.map(({ event }) => event)).toEqual(["identity.delete", "ratelimit.delete", "ratelimit.delete"]);
  expect(rows[0]?.correlation_id).toMatch(/^cor_/);
  expect(new Set(rows.map(({ correlation_id }) => correlation_id)).size).toBe(1);
});

test("deleteIdentity succeeds for only one of several concurrent calls", async () => {
  await t.data("identities.createIdentity", { externalId: "contested", ratelimits: [limit] });
  const calls = Array.from({ length: 6 }, () => t.call("identities.deleteIdentity", { identity: "contested" }));
  expect((await Promise.all(calls)).map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404, 404]);
});
