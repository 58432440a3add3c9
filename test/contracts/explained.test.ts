import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { explainRule, withLimitSteps } from "../../core/explanation/explain-rule.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { planRule } from "../../core/policies/plan-rule.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import type { KeyRecord } from "../../core/records.ts";
import { STATUS_AT_A_GATE } from "../../core/verification/codes.ts";
import type { UsageEvent } from "../../edge/events/contract.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import { explain, explainWithoutKey } from "../../edge/verification/explain.ts";
import { RuleVerification } from "../../edge/verification/rule-verification.ts";
import { aRatelimitRecord } from "../builders/key-view.ts";
import { API, aPolicy, aRule, call, openGate, type TestGate, WORKSPACE, withKey } from "../harness/gate.ts";

/*
 * Compares explanations with a real gate over HTTP: for any key, request and counter state an explanation predicts the gate's next decision
 * and changes nothing for the gate.
 */

const DAY_MS = 86_400_000;
const SHARED = "rlns_shared";
const OWNER = "owner";

const limit = (changes: Partial<CompiledPolicy["rules"][number]["ratelimits"][number]>) => ({
  scope: { kind: "name", name: "of-rule" } as const,
  identifier: "key" as const,
  limit: 2,
  durationMs: DAY_MS,
  cost: 1,
  accuracy: "strict" as const,
  ...changes,
});
const shared = { kind: "namespace", namespaceId: SHARED } as const;

const RULES: CompiledPolicy["rules"] = [
  aRule({ path: { prefix: "/open" }, access: "Anonymous" }),
  aRule({ methods: ["POST"], path: { prefix: "/orders" }, permissions: "orders.write AND (a.b OR orders.read)" }),
  aRule({
    path: { prefix: "/few" },
    ratelimits: [limit({}), limit({ scope: { kind: "name", name: "own" }, limit: 3 })],
  }),
  aRule({ path: { prefix: "/none" }, ratelimits: [limit({ limit: 0 })] }),
  aRule({
    path: { prefix: "/shared" },
    ratelimits: [limit({ scope: shared, identifier: "identity" }), limit({ cost: 2 })],
  }),
  aRule({ path: { prefix: "/dear" }, creditCost: 3, ratelimits: [limit({ scope: shared })] }),
  aRule({ path: { exact: "/free" }, creditCost: 0 }),
  aRule({
    path: { template: "/guests/{guest}" },
    access: "Anonymous",
    ratelimits: [
      limit({ identifier: undefined, by: ["path.guest", "method"] }),
      limit({ scope: shared, identifier: undefined, by: ["path.guest"], limit: 5 }),
    ],
  }),
  aRule({ path: { prefix: "/denied" }, access: "Deny" }),
];
const POLICY_SOURCE = { id: "pol_orders", ageMs: 0 };

const aKey = fc.record({
  isEnabled: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
  expires: fc.constantFrom(undefined, undefined, undefined, 5, 4_000_000_000_000),
  apiId: fc.constantFrom(API, API, API, API, "api_other"),
  permissions: fc.subarray(["orders.read", "orders.*", "a.b", "x.y"]),
  hasRole: fc.boolean(),
  hasOwner: fc.boolean(),
  own: fc.constantFrom(undefined, undefined, 1, 4),
  credits: fc.constantFrom(undefined, undefined, 0, 1, 3, 7),
});
const aRequest = fc.record({
  method: fc.constantFrom("GET", "POST"),
  path: fc.constantFrom(
    "/open",
    "/orders/1",
    "/orders/2",
    "/orders/3",
    "/few",
    "/none",
    "/shared/x",
    "/dear",
    "/free",
    "/else?a=b",
    "/a//b",
    "/few%2Fx",
    "/guests/a",
    "/guests/b?c",
    "/denied",
  ),
  before: fc.integer({ min: 0, max: 4 }),
  isKnown: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
});

describe.each(["Enforce", "Audit"] as const)("in mode %s", (mode) => {
  let gate: TestGate;
  let projection: Projection;
  const policy = aPolicy({ mode, rules: RULES });
  beforeAll(async () => {
    gate = await openGate({ policy: { mode, rules: RULES } });
    projection = await openProjection({
      source: gate.edge.source,
      stream: gate.edge.stream,
      follow: { workspaceId: WORKSPACE },
    });
    await gate.records.putAny("api", "api_other", { id: "api_other", name: "other" });
    await gate.records.putRole({ id: "role_1", name: "editor", permissions: ["orders.write"] });
    await gate.records.putOverride(SHARED, {
      id: "rlor_1",
      identifier: OWNER,
      limit: 5,
      durationMs: DAY_MS,
      async: false,
    });
    await gate.records.heartbeat();
  });
  afterAll(async () => {
    await projection.close();
    await gate.close();
  });

  const partsOf = () => ({
    nowMs: Date.now,
    projection,
    recordsAgeMs: () => projection.stalenessMs(),
    peekLimits: gate.edge.counters({ timeoutMs: 1000 }).peek,
    readCredits: async (ref: { workspaceId: string; keyId: string }) => {
      const [counter] = await gate.edge.credits.read([ref]);
      return counter && Math.max(0, counter.granted - counter.spent);
    },
  });

  async function explained(key: string, { method, path }: { method: string; path: string }) {
    const found = explainRule(policy, { method, path, source: POLICY_SOURCE });
    if (found.rule === undefined) return { code: found.code, steps: found.steps, limits: [] };
    const { rule, values } = found;
    if (rule.access === "Anonymous") {
      const request = { ...values, address: "" };
      const plan = planRule(undefined, rule, { workspaceId: WORKSPACE, request, audit: mode === "Audit" });
      const counting = { plan, withoutStore: policy, policy: POLICY_SOURCE };
      const { code, explained } = await explainWithoutKey(partsOf(), counting);
      return { code, steps: withLimitSteps(found.steps, explained.steps), limits: explained.limits };
    }
    const question = { active: { policy }, rule, hash: hashKey(key), clientIp: undefined, address: "", ...values };
    const verification = new RuleVerification({ projection, workspaceId: WORKSPACE }, question);
    const { code, explained } = await explain(partsOf(), verification, { policy: POLICY_SOURCE });
    return { code, steps: [...found.steps, ...explained.steps], limits: explained.limits };
  }

  async function lastOutcome(): Promise<string | undefined> {
    const events: UsageEvent[] = [];
    await gate.edge.sink.flush();
    await gate.edge.events.take(WORKSPACE, async (taken) => void events.push(...taken));
    return events.flatMap((event) => ("outcome" in event ? [event.outcome] : [])).at(-1);
  }

  let serial = 0;
  test("explanation agrees with the gate's next decision and changes nothing", { timeout: 120_000 }, async () => {
    const codes = new Map<string, number>();
    const guests = new Set<unknown>();
    await fc.assert(
      fc.asyncProperty(aKey, aRequest, async (of, request) => {
        serial += 1;
        const keyId = `key_${mode}_${serial}`;
        const externalId = serial % 3 === 0 ? OWNER : `owner_${serial}`;
        const record: Partial<KeyRecord> = {
          keyId,
          apiId: of.apiId,
          enabled: of.isEnabled,
          permissions: of.permissions,
          limited: of.credits !== undefined,
          roleIds: of.hasRole ? ["role_1"] : [],
          ratelimits:
            of.own === undefined
              ? []
              : [aRatelimitRecord("own", { limit: of.own, durationMs: DAY_MS, autoApply: true })],
          ...(of.expires === undefined ? {} : { expiresMs: of.expires }),
          ...(of.hasOwner ? { identityId: `id_${serial}` } : {}),
        };
        if (of.hasOwner) {
          const ratelimits = [aRatelimitRecord("of-owner", { limit: 3, durationMs: DAY_MS, autoApply: true })];
          await gate.records.putIdentity({ id: `id_${serial}`, externalId, ratelimits });
        }
        if (of.credits !== undefined) {
          const counter = { rev: 1, granted: of.credits, spent: 0 };
          await gate.edge.credits.load([{ ref: { workspaceId: WORKSPACE, keyId }, counter }]);
        }
        const known = await gate.records.putKey(record);
        const key = request.isKnown ? known : `${known}x`;
        for (let i = 0; i < request.before; i++) await call(gate.port, { ...request, ...withKey(key) });

        const first = await explained(key, request);
        const second = await explained(key, request);
        expect(second.limits.map(({ used }) => used)).toEqual(first.limits.map(({ used }) => used));
        await lastOutcome();
        const { status } = await call(gate.port, { ...request, ...withKey(key) });
        codes.set(first.code ?? "", (codes.get(first.code ?? "") ?? 0) + 1);
        const statuses: Readonly<Record<string, number>> = {
          ...STATUS_AT_A_GATE,
          ANONYMOUS: 200,
          MALFORMED: 400,
          DENIED: 403,
        };
        expect(status).toBe(mode === "Audit" ? 200 : statuses[first.code ?? ""]);
        // A request without a key or with an unknown key records no event.
        const outcome = await lastOutcome();
        const isGuest = request.path.startsWith("/guests");
        if (isGuest) guests.add(first.code);
        if (outcome !== undefined) expect(outcome).toBe(first.code);
        else if (!isGuest) expect(["ANONYMOUS", "MALFORMED", "NOT_FOUND", "DENIED"]).toContain(first.code);

        const deciding = first.steps.filter(({ decisive }) => decisive);
        expect(deciding.map(({ result }) => result)).toEqual(
          first.code === "VALID" ? [] : [first.code === "ANONYMOUS" ? "passed" : "refused"],
        );
      }),
      { numRuns: 250, seed: 20261123 },
    );
    // Each outcome occurred, so that the comparison is meaningful.
    const met = mode === "Enforce" ? ["RATE_LIMITED", "USAGE_EXCEEDED"] : [];
    for (const code of [
      ...["ANONYMOUS", "DENIED", "MALFORMED", "NOT_FOUND", "DISABLED", "EXPIRED", "INSUFFICIENT_PERMISSIONS", "VALID"],
      ...met,
    ]) {
      expect(codes.get(code) ?? 0, code).toBeGreaterThan(0);
    }
    expect([...guests].sort()).toEqual(mode === "Enforce" ? ["ANONYMOUS", "RATE_LIMITED"] : ["ANONYMOUS"]);
  });
});
