import { describe, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey, type Reply } from "./client.ts";
import { type LocalApi, openSystem, type System } from "./system.ts";

/*
 * Many concurrent callers through two api-servers with one Postgres and one Redis: unique objects are created once, and counts are exact.
 */

const CALLERS = 100;
/** Longer than an hour, so that no window ends during the test. */
const WINDOW_MS = 30 * 24 * 3_600_000;

async function twoApis(): Promise<{ system: System; either: (i: number) => LocalApi }> {
  const system = await openSystem();
  const apis = [await system.api(), await system.api()] as const;
  return { system, either: (i) => apis[i % 2 === 0 ? 0 : 1] };
}

/** Sends requests to both api-servers alternately and concurrently. */
const askAll = (either: (i: number) => LocalApi, requestOf: (i: number) => readonly [path: string, body: unknown]) =>
  Promise.all(Array.from({ length: CALLERS }, (_, i) => either(i).call(...requestOf(i))));

const statusesOf = (replies: readonly Reply[]): number[] => [...new Set(replies.map(({ status }) => status))].sort();

describe("concurrent creators of one object get the same one", () => {
  test("concurrent createIdentity and createKey create one identity", async () => {
    const { system, either } = await twoApis();
    const { apiId } = await makeKey(either(0));
    const externalId = "one-for-all";
    const replies = await askAll(either, (i) =>
      i % 4 < 2 ? ["identities.createIdentity", { externalId }] : ["keys.createKey", { apiId, externalId }],
    );
    const creators = replies.filter((_, i) => i % 4 < 2);
    expect(creators.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
    expect(creators.every(({ status }) => status === 200 || status === 409)).toBe(true);
    const keys = replies.filter((_, i) => i % 4 >= 2);
    expect(statusesOf(keys)).toEqual([200]);

    const { rows } = await system.db.query("select id from identities where external_id = $1", [externalId]);
    expect(rows).toHaveLength(1);
    const keyIds = await either(1).data("apis.listKeys", { apiId, externalId });
    expect(keyIds).toHaveLength(keys.length);
    const audit = await system.db.query("select from audit_log where event = 'identity.create'");
    expect(audit.rowCount).toBe(1);
    const [made] = creators.filter(({ status }) => status === 200);
    if (made !== undefined) expect(made.body.data.identityId).toBe(rows[0].id);
  });

  test("concurrent createPermission, createRole and createKey create one permission, case-insensitively", async () => {
    const { system, either } = await twoApis();
    const { apiId } = await makeKey(either(0));
    const slugs = ["only.one", "Only.One", "ONLY.ONE"];
    const replies = await askAll(either, (i) => {
      const slug = slugs[i % slugs.length];
      if (i % 4 === 0) return ["permissions.createPermission", { name: "One", slug }];
      if (i % 4 === 1) return ["permissions.createRole", { name: `role ${i}`, permissions: [slug, `beside.${i % 3}`] }];
      return ["keys.createKey", { apiId, permissions: [`beside.${i % 3}`, slug] }];
    });
    expect(replies.filter((_, i) => i % 4 === 0).filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
    expect(statusesOf(replies.filter((_, i) => i % 4 !== 0))).toEqual([200]);
    const { rows } = await system.db.query(
      `select lower(slug) as slug,
              (select count(*) from key_permissions kp where kp.permission_id = p.id) as keys,
              (select count(*) from role_permissions rp where rp.permission_id = p.id) as roles
         from permissions p
        order by slug`,
    );
    expect(rows.map(({ slug }) => slug)).toEqual(["beside.0", "beside.1", "beside.2", "only.one"]);
    expect(rows[3]).toMatchObject({ keys: CALLERS / 2, roles: CALLERS / 4 });
  });

  test("concurrent limit and multiLimit create one namespace with one counter", async () => {
    const { system, either } = await twoApis();
    const entry = (namespace: string) => ({ namespace, identifier: "all", limit: 1000, duration: WINDOW_MS });
    const replies = await askAll(either, (i) =>
      i % 4 < 2
        ? ["ratelimit.limit", entry("first-use")]
        : ["ratelimit.multiLimit", [entry("second-use"), entry("first-use")]],
    );
    expect(statusesOf(replies)).toEqual([200]);
    const { rows } = await system.db.query("select name from ratelimit_namespaces order by name");
    expect(rows).toEqual([{ name: "first-use" }, { name: "second-use" }]);
    const left = await either(0).data("ratelimit.multiLimit", [
      { ...entry("first-use"), cost: 0 },
      { ...entry("second-use"), cost: 0 },
    ]);
    expect(left.limits).toMatchObject([{ remaining: 1000 - CALLERS }, { remaining: 1000 - CALLERS / 2 }]);
  });
});

describe("counts are exact", () => {
  test("200 concurrent verifications of a key with 50 credits are VALID 50 times", async () => {
    const { either } = await twoApis();
    const { key, keyId } = await makeKey(either(0), { credits: { remaining: 50 } });
    const codes = await Promise.all(Array.from({ length: 200 }, (_, i) => either(i).code(key)));
    expect(
      Object.fromEntries([...Map.groupBy(codes, (code) => code)].map(([code, all]) => [code, all.length])),
    ).toEqual({ VALID: 50, USAGE_EXCEEDED: 150 });
    expect((await either(1).data("keys.getKey", { keyId })).credits).toEqual({ remaining: 0 });
  });

  test("limit of 100 admits exactly 100 of 1,000 requests through two api-servers", async () => {
    const { either } = await twoApis();
    const body = { namespace: "exact", identifier: "all", limit: 100, duration: WINDOW_MS };
    const admitted = await Promise.all(
      Array.from({ length: 1000 }, async (_, i) => (await either(i).data("ratelimit.limit", body)).success),
    );
    expect(admitted.filter(Boolean)).toHaveLength(100);
  });

  test("each concurrent call charges all of its up to 100 limits, or none", async () => {
    const { either } = await twoApis();
    const entry = (i: number, limit: number) => ({
      namespace: `part-${i}`,
      identifier: "all",
      limit,
      duration: WINDOW_MS,
    });
    // The 50th of 100 limits is the smallest.
    const body = Array.from({ length: 100 }, (_, i) => entry(i, i === 49 ? 7 : 1000));
    const passed = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => (await either(i).data("ratelimit.multiLimit", body)).passed),
    );
    expect(passed.filter(Boolean)).toHaveLength(7);
    const looked = await either(1).data(
      "ratelimit.multiLimit",
      body.map((one) => ({ ...one, cost: 0 })),
    );
    const left = looked.limits.map(({ remaining }: { remaining: number }) => remaining);
    expect(new Set(left)).toEqual(new Set([0, 993]));
  });
});

test("deleted identity loses its limits on the other api-server and gate", async () => {
  const { system, either } = await twoApis();
  const [here, there] = [either(0), either(1)];
  const ratelimits = [{ name: "requests", limit: 1, duration: WINDOW_MS, autoApply: true }];
  await here.data("identities.createIdentity", { externalId: "leaving", ratelimits });
  const { apiId, key } = await makeKey(here, { externalId: "leaving" });
  const gate = await system.gate(here, { apiId });
  expect(await gate.status(key)).toBe(200);
  expect([await gate.status(key), await here.code(key), await there.code(key)]).toEqual([
    429,
    "RATE_LIMITED",
    "RATE_LIMITED",
  ]);
  await here.data("identities.deleteIdentity", { identity: "leaving" });
  expect(await here.code(key)).toBe("VALID");
  await waitFor("the gate to serve", async () => (await gate.status(key)) === 200);
  await waitFor("the other api-server to do so", async () => (await there.code(key)) === "VALID");
  expect(await gate.status(key)).toBe(200);
});
