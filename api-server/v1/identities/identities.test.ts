import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const limit = (name: string, more: object = {}) => ({ name, limit: 10, duration: 60_000, ...more });
const message = (reply: { body: { error: { message: string } } }): string => reply.body.error.message;

describe("identities.createIdentity", () => {
  test("v1 identities.createIdentity creates an identity whose limits do not apply automatically", async () => {
    const meta = { plan: "pro", nested: { deep: [1, null] } };
    const { identityId } = await t.data("v1/identities.createIdentity", {
      externalId: "crea te/ü",
      meta,
      ratelimits: [limit("requests")],
    });
    expect(await t.data("identities.getIdentity", { identity: identityId })).toEqual({
      id: identityId,
      externalId: "crea te/ü",
      meta,
      ratelimits: [{ id: expect.any(String), ...limit("requests", { autoApply: false }) }],
    });
    const events = (await t.audit()).filter(({ targets }) => targets.some(({ id }) => id === identityId));
    expect(events.map(({ event }) => event)).toEqual(["identity.create", "ratelimit.create"]);
  });

  test("v1 identities.createIdentity requires an externalId unique in the workspace", async () => {
    const other = await t.makeWorkspace();
    await t.data("v1/identities.createIdentity", { externalId: "twice" });
    const again = await t.call("v1/identities.createIdentity", { externalId: "twice" });
    expect([again.status, again.body.error.code]).toEqual([409, "CONFLICT"]);
    const { rootKey } = other;
    expect((await t.call("v1/identities.createIdentity", { externalId: "twice" }, { rootKey })).status).toBe(200);
  });

  test("v1 identities.createIdentity with duplicate limit names gets 409 without changes", async () => {
    const reply = await t.call("v1/identities.createIdentity", {
      externalId: "doubled",
      ratelimits: [limit("a"), limit("b"), limit("a", { limit: 3 })],
    });
    expect([reply.status, reply.body.error.code]).toEqual([409, "CONFLICT"]);
    expect((await t.call("v1/identities.getIdentity", { externalId: "doubled" })).status).toBe(404);
  });

  test.each([
    { body: { externalId: "" }, path: "externalId" },
    { body: { externalId: "x".repeat(256) }, path: "externalId" },
    { body: { externalId: "nul\u0000" }, path: "externalId" },
    { body: { externalId: "u", ratelimits: [limit("a", { limit: 0 })] }, path: "ratelimits.0.limit" },
    { body: { externalId: "u", ratelimits: [limit("a", { duration: 999 })] }, path: "ratelimits.0.duration" },
    { body: { externalId: "u", meta: { text: "x".repeat(1_048_576) } }, path: "meta" },
    { body: {}, path: "externalId" },
  ])("v1 identities.createIdentity with $path out of range gets 400 with the location", async ({ body, path }) => {
    const reply = await t.call("v1/identities.createIdentity", body);
    expect(reply.status).toBe(400);
    expect(message(reply)).toMatch(new RegExp(`^${path.replaceAll(".", "\\.")}: `));
  });
});

describe("identities.getIdentity", () => {
  test("v1 identities.getIdentity requires an id or externalId, and prefers the id", async () => {
    const { identityId: one } = await t.data("v1/identities.createIdentity", { externalId: "get one" });
    const { identityId: two } = await t.data("v1/identities.createIdentity", { externalId: "get two" });
    const shown = { id: one, externalId: "get one", meta: {}, ratelimits: [] };
    expect(await t.data("v1/identities.getIdentity", { identityId: one })).toEqual(shown);
    expect(await t.data("v1/identities.getIdentity", { externalId: "get one" })).toEqual(shown);
    expect((await t.data("v1/identities.getIdentity", { identityId: two, externalId: "get one" })).id).toBe(two);
    const neither = await t.call("v1/identities.getIdentity", {}, { rootKey: null });
    expect([neither.status, neither.body.error.code]).toEqual([400, "BAD_REQUEST"]);
  });

  test("v1 identities.getIdentity by externalId ignores an identity whose id equals the externalId", async () => {
    const { identityId: first } = await t.data("v1/identities.createIdentity", { externalId: "plain" });
    const { identityId: second } = await t.data("v1/identities.createIdentity", { externalId: first });
    expect((await t.data("v1/identities.getIdentity", { externalId: first })).id).toBe(second);
    expect((await t.data("v1/identities.getIdentity", { identityId: first })).id).toBe(first);
    // "plain" is an externalId and no id.
    expect((await t.call("v1/identities.getIdentity", { identityId: "plain" })).status).toBe(404);
    expect((await t.call("v1/identities.deleteIdentity", { identityId: "plain" })).status).toBe(404);
  });
});

describe("identities.listIdentities", () => {
  test("v1 identities.listIdentities pages return all identities, ordered by id, and the total number", async () => {
    const { rootKey } = await t.makeWorkspace();
    const made: string[] = [];
    for (let at = 0; at < 7; at++) {
      const body = { externalId: `list ${at}`, ratelimits: at === 3 ? [limit("requests")] : [] };
      made.push((await t.data("v1/identities.createIdentity", body, { rootKey })).identityId);
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let pages = 1; ; pages++) {
      const page = await t.data(
        "v1/identities.listIdentities",
        { limit: 3, ...(cursor === undefined ? {} : { cursor }) },
        { rootKey },
      );
      expect(page.total).toBe(7);
      seen.push(...page.identities.map(({ id }: { id: string }) => id));
      cursor = page.cursor;
      if (cursor === undefined) {
        expect(pages).toBe(3);
        break;
      }
    }
    expect(seen).toEqual(made.toSorted());
    const all = await t.data("v1/identities.listIdentities", {}, { rootKey });
    expect(all.identities.map(({ ratelimits }: { ratelimits: unknown[] }) => ratelimits.length).toSorted()).toEqual([
      0, 0, 0, 0, 0, 0, 1,
    ]);
    expect(all.identities[0]).not.toHaveProperty("meta");
  });

  test("v1 identities.listIdentities of another environment checks its permission and returns an empty list", async () => {
    await t.data("v1/identities.createIdentity", { externalId: "environments" });
    expect(await t.data("v1/identities.listIdentities", { environment: "staging" })).toEqual({
      identities: [],
      total: 0,
    });
    const rootKey = await t.rootKey(["identity.default.read_identity"]);
    expect((await t.call("v1/identities.listIdentities", {}, { rootKey })).status).toBe(200);
    const staging = await t.call("v1/identities.listIdentities", { environment: "staging" }, { rootKey });
    expect([staging.status, staging.body.error.code]).toEqual([403, "INSUFFICIENT_PERMISSIONS"]);
  });
});

describe("identities.updateIdentity", () => {
  test("v1 identities.updateIdentity replaces given fields, and keeps omitted ones and each limit's autoApply", async () => {
    const { identityId } = await t.data("identities.createIdentity", {
      externalId: "update",
      meta: { plan: "pro" },
      ratelimits: [limit("requests", { autoApply: true }), limit("tokens")],
    });
    const before = await t.data("identities.getIdentity", { identity: identityId });
    const updated = await t.data("v1/identities.updateIdentity", {
      externalId: "update",
      environment: "anything",
      ratelimits: [limit("requests", { limit: 99 }), limit("fresh")],
    });
    expect(updated).toEqual({
      id: identityId,
      externalId: "update",
      meta: { plan: "pro" },
      ratelimits: [limit("fresh"), limit("requests", { limit: 99 })],
    });
    const after = await t.data("identities.getIdentity", { identity: identityId });
    expect(after.ratelimits).toEqual([
      { id: expect.any(String), ...limit("fresh", { autoApply: false }) },
      { ...before.ratelimits[0], limit: 99, autoApply: true },
    ]);
    const cleared = await t.data("v1/identities.updateIdentity", { identityId, meta: {}, ratelimits: [] });
    expect(cleared).toEqual({ id: identityId, externalId: "update", meta: {}, ratelimits: [] });
  });

  test("v1 identities.updateIdentity of a missing identity, or one of another workspace, gets 404", async () => {
    const { rootKey } = await t.makeWorkspace();
    const { identityId } = await t.data("v1/identities.createIdentity", { externalId: "elsewhere" });
    for (const selector of [{ identityId }, { externalId: "elsewhere" }]) {
      const reply = await t.call("v1/identities.updateIdentity", { ...selector, meta: {} }, { rootKey });
      expect([reply.status, reply.body.error.code]).toEqual([404, "NOT_FOUND"]);
    }
  });
});

describe("identities.deleteIdentity", () => {
  test("v1 identities.deleteIdentity frees the externalId and keeps its keys", async () => {
    const { identityId } = await t.data("v1/identities.createIdentity", { externalId: "gone" });
    const { apiId } = await t.data("apis.createApi", { name: "keys of gone" });
    const { keyId, key } = await t.data("keys.createKey", { apiId, externalId: "gone" });
    const rootKey = await t.rootKey([`identity.${identityId}.delete_identity`]);
    expect(await t.data("v1/identities.deleteIdentity", { identityId }, { rootKey })).toEqual({});
    expect((await t.call("v1/identities.deleteIdentity", { identityId })).status).toBe(404);
    const verified = await t.data("keys.verifyKey", { key });
    expect(verified).toMatchObject({ valid: true, keyId });
    expect(verified).not.toHaveProperty("identity");
    expect((await t.call("v1/identities.createIdentity", { externalId: "gone" })).status).toBe(200);
  });
});
