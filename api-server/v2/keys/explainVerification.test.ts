import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import type { PolicyFields } from "../../../core/manifests/from-store/policy-spec.ts";
import { attemptCounters } from "../../../core/policies/failed-attempts.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";
import { makeResources, type Resources } from "../../test/resources.ts";

const HOUR_MS = 3_600_000;

let t: TestApp;
let resources: Resources;
beforeAll(async () => {
  t = await buildTestApp();
  resources = makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: (path, body) => t.data(path, body) });
});
afterAll(() => t.close());

const explain = (body: object, options?: { rootKey: string }) => t.data("keys.explainVerification", body, options);

interface StepOut {
  readonly step: string;
  readonly result: string;
  readonly decisive: boolean;
  readonly detail: string;
}
const deciding = ({ steps }: { steps: StepOut[] }) => steps.filter(({ decisive }) => decisive).map(({ step }) => step);

describe("the same as keys.verifyKey", () => {
  const aCase = fc.record({
    enabled: fc.constantFrom(true, true, true, false),
    isExpired: fc.constantFrom(false, false, false, true),
    credits: fc.constantFrom(undefined, undefined, 0, 2, 9),
    own: fc.constantFrom(undefined, 1, 3),
    owner: fc.constantFrom(undefined, "one", "two"),
    before: fc.integer({ min: 0, max: 3 }),
    asked: fc.record(
      {
        permissions: fc.constantFrom("a.b", "a.b AND c.d", "x.y"),
        credits: fc.record({ cost: fc.constantFrom(0, 1, 3) }),
        ratelimits: fc.constantFrom(
          [{ name: "adhoc", limit: 2, duration: HOUR_MS }],
          [{ name: "of-owner", cost: 2 }],
          [{ name: "own", limit: 2 }],
        ),
      },
      { requiredKeys: [] },
    ),
  });
  const limit = (name: string, max: number) => ({ name, limit: max, duration: HOUR_MS, autoApply: true });

  test("explainVerification agrees with keys.verifyKey for random keys and requests", {
    timeout: 120_000,
  }, async () => {
    const role = await resources.role(["c.*"]);
    for (const externalId of ["one", "two"]) {
      await t.data("identities.createIdentity", { externalId, ratelimits: [limit("of-owner", 4)] });
    }
    const codes = new Set<unknown>();
    await fc.assert(
      fc.asyncProperty(aCase, async ({ before, asked, own, owner, credits, enabled, isExpired }) => {
        const { keyId, key } = await resources.key({
          enabled,
          permissions: ["a.b"],
          roles: [role.name],
          ...(own === undefined ? {} : { ratelimits: [limit("own", own)] }),
          ...(owner === undefined ? {} : { externalId: owner }),
          ...(credits === undefined ? {} : { credits: { remaining: credits } }),
        });
        if (isExpired) await t.deps.db.query("update keys set expires_at = 5 where id = $1", [keyId]);
        t.deps.projection.forgetAll();
        for (let i = 0; i < before; i++) await t.call("keys.verifyKey", { key });

        const explained = await t.call("keys.explainVerification", { keyId, ...asked });
        const again = await t.call("keys.explainVerification", { key, ...asked });
        const verified = await t.call("keys.verifyKey", { key, ...asked });
        expect([explained.status, again.status]).toEqual([verified.status, verified.status]);
        if (verified.status !== 200) return;
        const { code, limits } = explained.body.data;
        expect(again.body.data.code).toBe(code);
        expect(code).toBe(verified.body.data.code);
        codes.add(code);
        expect(deciding(explained.body.data)).toHaveLength(code === "VALID" ? 0 : 1);
        const counted: { name: string; exceeded: boolean; remaining: number }[] = verified.body.data.ratelimits ?? [];
        for (const { name, exceeded, remaining } of counted) {
          const said = limits.find((one: { name: string }) => one.name === name);
          expect(said.passed).toBe(!exceeded);
          if (code === "VALID") expect(said.remaining - said.cost).toBe(remaining);
        }
      }),
      { numRuns: 80, seed: 13 },
    );
    const all = ["VALID", "DISABLED", "EXPIRED", "INSUFFICIENT_PERMISSIONS", "RATE_LIMITED", "USAGE_EXCEEDED"];
    expect([...codes].sort()).toEqual(all.sort());
  });

  test("explainVerification uses the caller's address by default", async () => {
    const { keyId, key, apiId } = await resources.key();
    await t.deps.db.query("update apis set ip_allow_list = '{192.0.2.1}' where id = $1", [apiId]);
    t.deps.projection.forgetAll();
    expect((await t.data("keys.verifyKey", { key })).code).toBe("FORBIDDEN");
    expect(deciding(await explain({ keyId }))).toEqual(["address"]);
    expect((await explain({ keyId, clientIp: "192.0.2.1" })).code).toBe("VALID");
  });
});

describe("at a gate", () => {
  const rules: PolicyFields["rules"] = [
    { match: { path: { prefix: "/open" } }, access: "Anonymous" },
    {
      match: { methods: ["POST"], path: { prefix: "/orders" } },
      credits: { cost: 2 },
      ratelimits: [{ name: "orders", limit: 1, duration: "1h" }],
    },
  ];
  const aGate = async (apiId: string, more: PolicyFields = {}) =>
    (await resources.policy(apiId, { rules, ...more })).policyId;

  test("explainVerification of a gate request shows the policy, rule and limit", async () => {
    const { keyId, apiId } = await resources.key({
      credits: { remaining: 5, refill: { interval: "daily", amount: 7 } },
    });
    const policyId = await aGate(apiId);
    await t.edge.pods.report({
      workspaceId: t.workspace.id,
      policyId,
      podId: "shop/secret-name",
      generation: 1,
      version: 0,
      stalenessMs: 1_234,
    });
    const explained = await explain({ keyId, policyId, method: "POST", path: "/orders/1" });
    expect(explained.dataPlane).toEqual({ pods: 1, updated: 0, maxStalenessMs: 1_234 });
    expect(explained).toMatchObject({
      code: "VALID",
      allowed: true,
      status: 200,
      rule: 1,
      limits: [{ name: "orders", source: "rule", limit: 1, used: 0 }],
      credits: { remaining: 5, cost: 2, passed: true, refill: { interval: "daily", amount: 7 } },
    });
    const rule = explained.steps.find(({ step }: StepOut) => step === "rule");
    expect(rule).toMatchObject({ sources: [{ kind: "policy", id: policyId, ageMs: 0 }] });
    expect(rule.detail).toBe(
      "Rule 2 of 2 is the first that matches (POST, what is under /orders): it needs a key, 2 credits where they are limited, room in 1 limit.",
    );
  });

  describe("with rules of the second edition", () => {
    const more: PolicyFields = {
      clientAddress: { from: "Connection" },
      rules: [
        {
          name: "guests",
          match: { path: { template: "/catalogue/{item}" } },
          access: "Anonymous",
          ratelimits: [{ name: "guests", by: ["address", "path.item"], limit: 1, duration: "1h" }],
        },
        { name: "internal", match: { hosts: ["internal.test"] }, access: "Deny" },
        { name: "beta", match: { headers: [{ name: "X-Beta", present: true }] }, access: "Anonymous" },
      ],
    };

    test("explainVerification shows limits of an anonymous rule with their identifier, and charges nothing", async () => {
      const { keyId, apiId } = await resources.key();
      const policyId = await aGate(apiId, more);
      const asked = { keyId, policyId, path: "/catalogue/7", clientIp: "2001:db8:1:2:3::4" };
      const identifier = "address=2001:db8:1:2::/64,path.item=7";
      const first = await explain(asked);
      expect(first).toMatchObject({
        code: "ANONYMOUS",
        allowed: true,
        status: 200,
        rule: 0,
        ruleName: "guests",
        limits: [{ name: "guests", source: "rule", identifier, limit: 1, used: 0, passed: true }],
      });
      expect(deciding(first)).toEqual(["rule"]);
      expect((await explain(asked)).limits).toMatchObject([{ used: 0 }]);
      const charge = { workspaceId: t.workspace.id, scope: { kind: "name", value: "guests" }, identifier } as const;
      await t.edge
        .counters({ timeoutMs: 5_000 })
        .consume({ limits: [{ ...charge, limit: 1, durationMs: HOUR_MS, cost: 1, accuracy: "strict" }] });
      const exceeded = await explain(asked);
      expect(exceeded).toMatchObject({
        code: "RATE_LIMITED",
        allowed: false,
        status: 429,
        retryAfter: expect.any(Number),
        limits: [{ identifier, used: 1, passed: false }],
      });
      expect(deciding(exceeded)).toEqual(["limits"]);
      const step = exceeded.steps.find(({ decisive }: StepOut) => decisive);
      expect(step.detail).toContain(`guests ${identifier}, 1 of 1 used in 1h (of the rule)`);
      expect(await explain({ ...asked, path: "/catalogue/8" })).toMatchObject({ code: "ANONYMOUS" });
      const blind = await t.call("keys.explainVerification", { ...asked, clientIp: undefined });
      expect([blind.status, blind.body.error.errors[0].location]).toEqual([400, "body.clientIp"]);
    });

    test("explainVerification shows the failed attempts of the address, and exempts a key that recently succeeded from this address", async () => {
      const { keyId, apiId } = await resources.key();
      const policyId = await aGate(apiId, { ...more, rules: [], failedAttempts: { limit: 2, duration: "1h" } });
      const asked = { keyId, policyId, clientIp: "198.51.100.7" };
      const attemptsOf = ({ steps }: { steps: StepOut[] }) => steps.find(({ step }) => step === "attempts");
      const first = await explain(asked);
      expect(first).toMatchObject({ code: "VALID", status: 200 });
      expect(attemptsOf(first)).toMatchObject({ result: "passed", observed: "0/2", decisive: false });
      expect(attemptsOf(await explain({ keyId, policyId }))).toBeUndefined();

      const { rows } = await t.deps.db.query<{ hash: string }>("select hash from keys where id = $1", [keyId]);
      const limit = { limit: 2, durationMs: HOUR_MS };
      const of = { workspaceId: t.workspace.id, policyId, limit, address: "198.51.100.7" };
      const { failure, success } = attemptCounters({ ...of, hash: rows[0]?.hash ?? "" });
      const counters = t.edge.counters({ timeoutMs: 5_000 });
      await counters.consume({ limits: [{ ...failure, cost: 2, accuracy: "strict" }] });
      const blocked = await explain(asked);
      expect(blocked).toMatchObject({
        code: "TOO_MANY_ATTEMPTS",
        allowed: false,
        status: 429,
        retryAfter: expect.any(Number),
      });
      expect(blocked.retryAfter).toBeGreaterThan(0);
      expect(deciding(blocked)).toEqual(["attempts"]);
      expect(attemptsOf(blocked)?.detail).toContain("2 of 2 failed attempts from 198.51.100.7 in 1h");
      expect(await explain({ ...asked, clientIp: "198.51.100.8" })).toMatchObject({ code: "VALID" });

      await counters.consume({ limits: [{ ...success, accuracy: "strict" }] });
      const spared = await explain(asked);
      expect(spared).toMatchObject({ code: "VALID", allowed: true });
      expect(attemptsOf(spared)).toMatchObject({ result: "passed", observed: "2/2" });
      expect(attemptsOf(spared)?.detail).toContain("succeeded from there within the last hour");
    });

    test("explainVerification shows DENIED for a rule that denies the request, and MALFORMED for a repeated header of a rule", async () => {
      const { keyId, apiId } = await resources.key();
      const policyId = await aGate(apiId, more);
      const denied = await explain({ keyId, policyId, host: "Internal.test:8443" });
      expect(denied).toMatchObject({ code: "DENIED", allowed: false, status: 403, rule: 1, ruleName: "internal" });
      expect(deciding(denied)).toEqual(["rule"]);
      const beta = { name: "x-beta", value: "1" };
      expect(await explain({ keyId, policyId, headers: [beta] })).toMatchObject({ code: "ANONYMOUS", rule: 2 });
      const removed = [beta, { name: "Connection", value: "X-Beta" }];
      for (const headers of [[beta, { ...beta, name: "X-Beta" }], [{ ...beta, name: "x_beta" }], removed]) {
        const ambiguous = await explain({ keyId, policyId, headers });
        expect(ambiguous).toMatchObject({ code: "MALFORMED", allowed: false, status: 400 });
        expect(deciding(ambiguous)).toEqual(["rule"]);
      }
      for (const host of ["int%65rnal.test", "internal.test/"]) {
        const unclear = await t.call("keys.explainVerification", { keyId, policyId, host });
        expect(unclear.status).toBe(400);
      }
      const audited = await aGate(apiId, { ...more, mode: "Audit" });
      expect(await explain({ keyId, policyId: audited, host: "internal.test" })).toMatchObject({
        code: "DENIED",
        allowed: true,
        status: 200,
      });
    });
  });

  test("explainVerification shows the value of onStale and whether gates apply it now", async () => {
    const { keyId, apiId } = await resources.key();
    const stale = async (onStale: PolicyFields["onStale"], stalenessMs: number | undefined) => {
      const policyId = await aGate(apiId, { onStale });
      const report = { workspaceId: t.workspace.id, policyId, podId: "shop/a", generation: 1, version: 0 };
      if (stalenessMs !== undefined) await t.edge.pods.report({ ...report, stalenessMs });
      const { code, allowed, steps } = await explain({ keyId, policyId, method: "POST", path: "/orders" });
      const { result, observed, detail, decisive } = steps.find(({ step }: StepOut) => step === "stale");
      // It is said, and the decision is that of fresh data.
      expect({ code, allowed, decisive }).toEqual({ code: "VALID", allowed: true, decisive: false });
      return { result, observed, detail };
    };
    const serve = { after: "30s", action: "Serve", denyAfter: "15m" } as const;
    expect(await stale(serve, undefined)).toMatchObject({ result: "passed", observed: "at most 30s" });
    expect(await stale(serve, 640)).toMatchObject({ result: "passed", observed: "640ms, at most 30s" });
    const served = await stale(serve, 45_000);
    expect(served).toMatchObject({ result: "passed", observed: "45s, at most 30s" });
    expect(served.detail).toMatch(/^The data of a gate is 45s old: .* returns 503 for others/);
    expect(await stale({ ...serve, action: "Deny" }, 45_000)).toMatchObject({ result: "refused" });
    expect(await stale(serve, Number.POSITIVE_INFINITY)).toMatchObject({
      result: "refused",
      observed: "unknown, at most 30s",
    });
    const open = await explain({ keyId, policyId: await aGate(apiId), path: "/healthz" });
    const hasStale = open.steps.some(({ step }: StepOut) => step === "stale");
    expect(hasStale).toBe(open.code !== "ANONYMOUS");
  });

  test("explainVerification checks no address if the policy defines no clientAddress", async () => {
    const { keyId, apiId } = await resources.key();
    await t.deps.db.query("update apis set ip_allow_list = '{192.0.2.1}' where id = $1", [apiId]);
    t.deps.projection.forgetAll();
    const blind = await aGate(apiId);
    expect((await explain({ keyId, policyId: blind, clientIp: "192.0.2.2" })).code).toBe("VALID");
    const seeing = await aGate(apiId, { clientAddress: { from: "Connection" } });
    expect((await explain({ keyId, policyId: seeing, clientIp: "192.0.2.2" })).code).toBe("FORBIDDEN");
  });

  test("explainVerification in Audit mode admits the request and shows the code that would be counted", async () => {
    const { keyId, apiId } = await resources.key({ enabled: false });
    const policyId = await aGate(apiId, { mode: "Audit" });
    const audited = { mode: "Audit", allowed: true, status: 200 };
    expect(await explain({ keyId, policyId })).toMatchObject({ ...audited, code: "DISABLED" });
    expect(await explain({ keyId, policyId, path: "/a//b" })).toMatchObject({ ...audited, code: "MALFORMED" });
  });

  test("explainVerification rejects parameters that the policy rules define", async () => {
    const { keyId, apiId } = await resources.key();
    const policyId = await aGate(apiId);
    for (const more of [{ permissions: "a.b" }, { credits: { cost: 1 } }, { ratelimits: [] }]) {
      const { status, body } = await t.call("keys.explainVerification", { keyId, policyId, ...more });
      expect([status, body.error.errors[0].location]).toEqual([400, `body.${Object.keys(more)[0]}`]);
    }
  });
});

describe("permissions", () => {
  test("explainVerification requires both permissions on the API of the key", async () => {
    const mine = await resources.key();
    const other = await resources.key({ enabled: false });
    const on = (apiId: string) => [`api.${apiId}.read_key`, `api.${apiId}.verify_key`];
    const rootKey = await t.rootKey(on(mine.apiId));
    expect((await explain({ key: mine.key }, { rootKey })).code).toBe("VALID");
    const shown = (response: object) => JSON.stringify(response).replaceAll(/"(now|ageMs)":\d+/g, '"$1":0');
    const never = await explain({ key: "never" }, { rootKey });
    expect(never).toMatchObject({ code: "NOT_FOUND", status: 401 });
    expect(never).not.toHaveProperty("stores");
    expect(shown(await explain({ key: other.key }, { rootKey }))).toBe(shown(never));
    for (const lacking of on(mine.apiId)) {
      const half = await t.rootKey(on(mine.apiId).filter((tuple) => tuple !== lacking));
      expect((await t.call("keys.explainVerification", { key: mine.key }, { rootKey: half })).status).toBe(403);
    }
    const byId = await t.call("keys.explainVerification", { keyId: other.keyId }, { rootKey });
    expect(byId.status).toBe(403);
  });

  test("explainVerification requires both permissions on the API of the policy", async () => {
    const [mine, other] = [await resources.key(), await resources.policy()];
    const rootKey = await t.rootKey([`api.${mine.apiId}.read_key`, `api.${mine.apiId}.verify_key`]);
    const { policyId } = other;
    expect((await t.call("keys.explainVerification", { keyId: mine.keyId, policyId }, { rootKey })).status).toBe(403);
  });

  test("explainVerification gives the same response for a key of another workspace and for an unknown key", async () => {
    const { key, keyId } = await resources.key();
    const { rootKey } = await t.makeWorkspace();
    expect((await explain({ key }, { rootKey })).code).toBe("NOT_FOUND");
    expect((await t.call("keys.explainVerification", { keyId }, { rootKey })).status).toBe(404);
  });
});

test.each([
  { name: "neither a key nor an id", body: {} },
  { name: "both", body: { keyId: "key_4fGh7Jk2LmN8pQrS", key: "a" } },
  { name: "a key that is too long", body: { key: "k".repeat(513) } },
  { name: "a method that is none", body: { key: "a", method: "get" } },
  { name: "a path that is too long", body: { key: "a", path: `/${"a".repeat(4_096)}` } },
])("explainVerification with $name gets 400", async ({ body }) => {
  expect((await t.call("keys.explainVerification", body)).status).toBe(400);
});

test("explainVerification exposes no secret, hash or meta and records nothing", async () => {
  const { key, keyId } = await resources.key({ credits: { remaining: 2 }, meta: { note: "private words" } });
  const before = (await t.audit()).length;
  const text = JSON.stringify([await explain({ keyId }), await explain({ key }), await explain({ key: `${key}x` })]);
  for (const word of [key, hashKey(key), "private words"]) expect(text).not.toContain(word);
  expect(t.logs.join("\n")).not.toContain(key);
  expect((await t.audit()).length).toBe(before);
  const lines: string[] = [];
  const { addLine } = t.edge.sink;
  t.edge.sink.addLine = (workspaceId, line) => {
    lines.push(line);
    return addLine.call(t.edge.sink, workspaceId, line);
  };
  await explain({ key });
  t.edge.sink.addLine = addLine;
  expect(lines).toEqual([]);
  expect((await t.data("keys.getKey", { keyId })).credits.remaining).toBe(2);
});
