import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

let made = 0;
const create = async (more: object = {}): Promise<{ externalId: string; identityId: string }> => {
  const externalId = `user_${++made}`;
  return { externalId, ...(await t.data("identities.createIdentity", { externalId, ...more })) };
};
const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: true };
const update = (body: object): Promise<Identity> => t.data("identities.updateIdentity", body);
const auditOf = async (id: string) =>
  (await t.audit()).filter(({ targets }) => targets.some((target) => target.id === id));

interface Limit {
  readonly name: string;
  readonly limit: number;
  readonly duration: number;
  readonly autoApply: boolean;
}
interface Identity {
  readonly id: string;
  readonly externalId: string;
  readonly meta?: object;
  readonly ratelimits?: readonly (Limit & { readonly id: string })[];
}

describe("what is given", () => {
  test("updateIdentity replaces given fields, keeps omitted ones and returns the result", async () => {
    const { externalId, identityId } = await create({ meta: { plan: "pro" }, ratelimits: [limit] });
    const before = await t.data("identities.getIdentity", { identity: externalId });
    expect(await update({ identity: externalId })).toEqual(before);
    expect(await update({ identity: identityId, meta: { other: [1, null] } })).toEqual({
      ...before,
      meta: { other: [1, null] },
    });
    const { meta, ratelimits } = await update({ identity: externalId, ratelimits: [] });
    expect({ meta, ratelimits }).toEqual({ meta: { other: [1, null] }, ratelimits: undefined });
    expect(await update({ identity: externalId, meta: {} })).toEqual({ id: identityId, externalId });
  });

  test("changes by updateIdentity apply to the next verification of the identity's keys", async () => {
    const { externalId } = await create({ ratelimits: [{ ...limit, limit: 1, duration: 3_600_000 }] });
    const { apiId } = await t.data("apis.createApi", { name: "orders" });
    const { key } = await t.data("keys.createKey", { apiId, externalId });
    const code = async () => (await t.data("keys.verifyKey", { key })).code;
    expect([await code(), await code()]).toEqual(["VALID", "RATE_LIMITED"]);
    await update({ identity: externalId, ratelimits: [{ ...limit, limit: 2, duration: 3_600_000 }] });
    expect([await code(), await code()]).toEqual(["VALID", "RATE_LIMITED"]);
    await update({ identity: externalId, ratelimits: [], meta: { seen: true } });
    expect(await t.data("keys.verifyKey", { key })).toMatchObject({
      code: "VALID",
      identity: { externalId, meta: { seen: true } },
    });
  });

  test.each([
    { name: "meta null", body: { meta: null }, status: 400 },
    { name: "ratelimits null", body: { ratelimits: null }, status: 400 },
    { name: "externalId, which cannot be changed", body: { externalId: "new" }, status: 400 },
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
    { name: "an unknown member of a limit, which is ignored", body: { ratelimits: [{ ...limit, x: 1 }] }, status: 200 },
    { name: "an empty identity", body: { identity: "" }, status: 400 },
    { name: "an identity of 256 characters", body: { identity: "i".repeat(256) }, status: 400 },
  ])("updateIdentity with $name returns $status", async ({ body, status }) => {
    const { externalId } = await create();
    expect((await t.call("identities.updateIdentity", { identity: externalId, ...body })).status).toBe(status);
  });
});

test("updateIdentity checks permission, duplicate limits, meta size and existence in this order", async () => {
  const tooMuch = { a: "x".repeat(1_048_576) };
  const bad = { identity: "nobody", meta: tooMuch, ratelimits: [limit, limit] };
  const rootKey = await t.rootKey(["identity.*.read_identity", "identity.*.create_identity"]);
  const refused = await t.call("identities.updateIdentity", bad, { rootKey });
  expect([refused.status, refused.body.error.detail.includes("identity.*.update_identity")]).toEqual([403, true]);
  const placeOf = ({ body }: Reply): string => body.error.errors[0].location;
  expect(placeOf(await t.call("identities.updateIdentity", bad))).toBe("body.ratelimits[1].name");
  expect(placeOf(await t.call("identities.updateIdentity", { ...bad, ratelimits: [limit] }))).toBe("body.meta");
  const reply = await t.call("identities.updateIdentity", { identity: "nobody" });
  expect(reply.body.error.type).toBe("https://docs.test/errors/identity_not_found");
});

test("updateIdentity writes an audit entry for the identity and one for each changed limit", async () => {
  const named = (name: string, of: Partial<Limit> = {}): Limit => ({ ...limit, name, ...of });
  const { externalId, identityId } = await create({ ratelimits: [named("same"), named("changed"), named("dropped")] });
  const before = (await auditOf(identityId)).length;
  const body = {
    identity: externalId,
    ratelimits: [named("same"), named("changed", { limit: 11 }), named("fresh")],
  };
  await update(body);
  const rows = (await auditOf(identityId)).slice(before);
  const said = rows.map(({ event, targets }) => [event, targets.find(({ type }) => type === "ratelimit")?.name]);
  expect(said.sort()).toEqual([
    ["identity.update", undefined],
    ["ratelimit.create", "fresh"],
    ["ratelimit.delete", "dropped"],
    ["ratelimit.update", "changed"],
  ]);
  expect(new Set(rows.map(({ correlation_id }) => correlation_id)).size).toBe(1);
  await update(body);
  expect((await auditOf(identityId)).slice(before + 4).map(({ event }) => event)).toEqual(["identity.update"]);
});

/*
 * Any sequence of updates, against a plain model of what the API promises (api-v2.md section 16): what is omitted stays, a value
 * replaces; a limit is the same one as long as its name stays.
 */
test("sequences of updateIdentity calls follow the merge rules, and limits that remain keep their ids", async () => {
  const anUpdate = fc.record(
    {
      meta: fc.dictionary(fc.constantFrom("a", "b", "c"), fc.oneof(fc.integer(), fc.constant(null), fc.string()), {
        noNullPrototype: true,
      }),
      ratelimits: fc.uniqueArray(
        fc.record({
          name: fc.constantFrom("alpha", "beta", "gamma", "delta"),
          limit: fc.integer({ min: 1, max: 3 }),
          duration: fc.constantFrom(1000, 60_000),
          autoApply: fc.boolean(),
        }),
        { selector: ({ name }) => name },
      ),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(anUpdate, { minLength: 1, maxLength: 8 }), async (updates) => {
      const { externalId, identityId } = await create();
      let meta: object = {};
      let limits: readonly Limit[] = [];
      let ids = new Map<string, string>();
      const everyId = new Set<string>();
      for (const body of updates) {
        const response = await update({ identity: externalId, ...body });
        if (body.meta !== undefined) meta = body.meta;
        if (body.ratelimits !== undefined) limits = body.ratelimits;

        const { ratelimits = [], meta: metaNow = {}, ...rest } = response;
        expect(rest).toEqual({ id: identityId, externalId });
        // By their text: what a caller stores is given back as it was.
        expect(metaNow).toEqual(JSON.parse(JSON.stringify(meta)));
        const idsNow = new Map(ratelimits.map(({ name, id }) => [name, id]));
        expect(ratelimits.map(({ id: _, ...one }) => one)).toEqual(
          limits.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
        );
        for (const [name, id] of idsNow) {
          if (ids.has(name)) expect(id).toBe(ids.get(name));
          // A name that comes back later is another limit.
          else expect(everyId).not.toContain(id);
          everyId.add(id);
        }
        ids = idsNow;
        expect(await t.data("identities.getIdentity", { identity: identityId })).toEqual(response);
      }
    }),
    { numRuns: 40 },
  );
});

test("concurrent updateIdentity calls are atomic, and each returns its own result", async () => {
  for (let round = 0; round < 5; round++) {
    const { externalId } = await create({ ratelimits: [{ ...limit, name: "before" }] });
    const sets = Array.from({ length: 8 }, (_, i) =>
      [`own${i}`, "shared", `more${i % 2}`].map((name) => ({ ...limit, name, limit: i + 1 })).sort(byName),
    );
    const responses = await Promise.all(sets.map((ratelimits) => update({ identity: externalId, ratelimits })));
    for (const [i, { ratelimits = [] }] of responses.entries()) {
      expect(ratelimits.map(({ id: _, ...one }) => one)).toEqual(sets[i]);
    }
    const { ratelimits } = await t.data("identities.getIdentity", { identity: externalId });
    expect(sets).toContainEqual(ratelimits.map(({ id: _, ...one }: { id: string }) => one));
  }
});

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
