import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

let made = 0;
const freshId = (): string => `user_${++made}`;
const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: true };

describe("identities.createIdentity", () => {
  test("createIdentity returns an identity readable by id and externalId", async () => {
    const externalId = freshId();
    const { identityId } = await t.data("identities.createIdentity", {
      externalId,
      meta: { plan: "pro" },
      ratelimits: [limit],
    });
    const expected = {
      id: identityId,
      externalId,
      meta: { plan: "pro" },
      ratelimits: [{ id: expect.stringMatching(/^rl_/), ...limit }],
    };
    expect(await t.data("identities.getIdentity", { identity: identityId })).toEqual(expected);
    expect(await t.data("identities.getIdentity", { identity: externalId })).toEqual(expected);
  });

  test("createIdentity omits empty meta and limits", async () => {
    const externalId = freshId();
    const { identityId } = await t.data("identities.createIdentity", { externalId, meta: {}, ratelimits: [] });
    expect(await t.data("identities.getIdentity", { identity: externalId })).toEqual({ id: identityId, externalId });
  });

  test.each([
    { name: "an unknown member is ignored", body: { nope: 1 }, status: 200 },
    { name: "an unknown member of a limit is ignored", body: { ratelimits: [{ ...limit, nope: 1 }] }, status: 200 },
    { name: "an empty externalId", body: { externalId: "" }, status: 400 },
    { name: "an externalId of 255", body: { externalId: "e".repeat(255) }, status: 200 },
    { name: "an externalId of 256", body: { externalId: "e".repeat(256) }, status: 400 },
    { name: "an externalId with a space", body: { externalId: "a b" }, status: 400 },
    {
      name: "100 members of meta",
      body: { meta: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [i, i])) },
      status: 200,
    },
    {
      name: "101 members of meta",
      body: { meta: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [i, i])) },
      status: 400,
    },
    { name: "meta of 1 MiB", body: { meta: { a: "x".repeat(1_048_576 - 8) } }, status: 200 },
    { name: "meta of 1 MiB and a byte", body: { meta: { a: "x".repeat(1_048_576 - 7) } }, status: 400 },
    {
      name: "50 limits",
      body: { ratelimits: Array.from({ length: 50 }, (_, i) => ({ ...limit, name: `limit${i}` })) },
      status: 200,
    },
    {
      name: "51 limits",
      body: { ratelimits: Array.from({ length: 51 }, (_, i) => ({ ...limit, name: `limit${i}` })) },
      status: 400,
    },
    { name: "two limits of one name", body: { ratelimits: [limit, limit] }, status: 400 },
    { name: "a limit's name of 2", body: { ratelimits: [{ ...limit, name: "ab" }] }, status: 400 },
    { name: "a limit's name of 129", body: { ratelimits: [{ ...limit, name: "a".repeat(129) }] }, status: 400 },
    { name: "a window of 999 ms", body: { ratelimits: [{ ...limit, duration: 999 }] }, status: 400 },
  ])("createIdentity with $name returns $status", async ({ body, status }) => {
    const reply = await t.call("identities.createIdentity", { externalId: freshId(), ...body });
    expect(reply.status).toBe(status);
  });

  test("createIdentity with an externalId in use gets 409, and externalIds are case-sensitive", async () => {
    const externalId = freshId();
    await t.data("identities.createIdentity", { externalId });
    const reply = await t.call("identities.createIdentity", { externalId });
    expect(reply.body.error).toMatchObject({
      status: 409,
      title: "Conflicting Resource",
      type: "https://docs.test/errors/identity_already_exists",
    });
    expect((await t.call("identities.createIdentity", { externalId: externalId.toUpperCase() })).status).toBe(200);
  });

  test("createIdentity succeeds for exactly one of several concurrent calls", async () => {
    const externalId = freshId();
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => t.call("identities.createIdentity", { externalId, ratelimits: [limit] })),
    );
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  test("createIdentity returns 403 before the handler checks anything else", async () => {
    const externalId = freshId();
    await t.data("identities.createIdentity", { externalId });
    const rootKey = await t.rootKey(["identity.*.read_identity"]);
    const reply = await t.call("identities.createIdentity", { externalId, ratelimits: [limit, limit] }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain("identity.*.create_identity");
  });

  test("createIdentity writes audit entries for the identity and its limits under one correlation id", async () => {
    const workspace = await t.makeWorkspace();
    await t.data(
      "identities.createIdentity",
      { externalId: "u", ratelimits: [limit, { ...limit, name: "other" }] },
      { rootKey: workspace.rootKey },
    );
    const audit = await t.audit(workspace.id);
    expect(audit.map(({ event }) => event)).toEqual(["identity.create", "ratelimit.create", "ratelimit.create"]);
    expect(new Set(audit.map(({ correlation_id }) => correlation_id)).size).toBe(1);
    expect(audit[0]?.correlation_id).toMatch(/^cor_/);
  });
});

describe("identities.getIdentity", () => {
  test("getIdentity prefers an id over an equal externalId", async () => {
    const { identityId } = await t.data("identities.createIdentity", { externalId: freshId() });
    await t.data("identities.createIdentity", { externalId: identityId });
    expect((await t.data("identities.getIdentity", { identity: identityId })).id).toBe(identityId);
  });

  test("getIdentity checks for 404 before 403, and accepts a permission for this id", async () => {
    const externalId = freshId();
    const { identityId } = await t.data("identities.createIdentity", { externalId });
    const one = await t.rootKey([`identity.${identityId}.read_identity`]);
    const byName = await t.rootKey([`identity.${externalId}.read_identity`]);
    const statusOf = async (identity: string, rootKey: string) =>
      (await t.call("identities.getIdentity", { identity }, { rootKey })).status;
    expect(await statusOf(externalId, one)).toBe(200);
    expect(await statusOf(externalId, byName)).toBe(403);
    expect(await statusOf("nobody", byName)).toBe(404);
    expect((await t.call("identities.getIdentity", { identity: "" })).status).toBe(400);
  });
});
