import { describe, expect, test } from "vitest";
import type { LimitCharge } from "../../core/charges.ts";
import { parseQuery } from "../../core/permissions/query.ts";
import type { OverrideRecord } from "../../core/records.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type ChargePlan, planCall } from "../../core/verification/plan-charges.ts";
import { aKeyView, anIdentityRecord, aRatelimitRecord } from "../../test/builders/key-view.ts";
import { CountersUnavailable } from "../counters/contract.ts";
import { MemoryCounters, MemoryStore } from "../counters/memory.ts";
import type { Lookup } from "../projection/contract.ts";
import type { WithoutStore } from "./count.ts";
import { type ExplainDeps, explain } from "./explain.ts";
import type { Verification } from "./verify.ts";

const NOW_MS = 1_800_000_000_000;
const MINUTE = 60_000;

interface Given extends Partial<Omit<ExplainDeps, "projection">> {
  readonly overrides?: Readonly<Record<string, Lookup<OverrideRecord>>>;
}

function partsOf({ overrides = {}, ...given }: Given = {}) {
  const counters = new MemoryCounters(new MemoryStore(() => NOW_MS));
  const parts: ExplainDeps = {
    nowMs: () => NOW_MS,
    recordsAgeMs: () => 849.2,
    projection: {
      findOverride: async (_ws, _ns, identifier) => overrides[identifier] ?? { status: "absent" },
      findNamespace: async (_ws, id) => ({ status: "found", value: { id, name: "public", deleted: false } }),
    },
    peekLimits: (limits) => counters.consume({ limits }, { dryRun: true }),
    readCredits: async () => 5,
    ...given,
  };
  return { parts, counters };
}

const away = { peekLimits: () => Promise.reject(new CountersUnavailable("away")) };

function asking(view: KeyView | Lookup<KeyView>, of: Partial<Verification> = {}): Verification {
  const found: Lookup<KeyView> = "key" in view ? { status: "found", value: view } : view;
  return {
    clientIp: undefined,
    find: () => found,
    maySee: () => true,
    readQuery: () => undefined,
    plan: ownPlan,
    withoutStore: () => ({ onCounterFailure: "Deny", onCreditFailure: "Deny" }),
    ...of,
  };
}

function ownPlan(view: KeyView): ChargePlan {
  const plan = planCall(view, { ratelimits: [], creditCost: 1 });
  if (!("limits" in plan)) throw new Error("nothing was named");
  return plan;
}

const NAMESPACE: LimitCharge = {
  workspaceId: "ws_2",
  scope: { kind: "namespace", value: "rlns_6" },
  identifier: "alice",
  limit: 10,
  durationMs: MINUTE,
  cost: 1,
  accuracy: "strict",
};
const shared = { plan: (view: KeyView): ChargePlan => ({ ...ownPlan(view), shared: [NAMESPACE] }) };
const limited = () => aKeyView({ key: { ratelimits: [aRatelimitRecord("calls", { limit: 1, autoApply: true })] } });

const stepOf = ({ explained }: Awaited<ReturnType<typeof explain>>, name: string) =>
  explained.steps.find(({ step }) => step === name);

describe("where a value comes from", () => {
  test("explain names the role that grants a permission", async () => {
    const view = aKeyView();
    const explained = await explain(
      partsOf().parts,
      asking(view, { readQuery: () => parseQuery("invoices.write AND audit.read AND carts.read") }),
    );
    expect(explained.explained.permissions.needed).toEqual([
      { slug: "invoices.write", isHeld: true, by: [{ slug: "invoices.write", role: "writer" }] },
      { slug: "audit.read", isHeld: true, by: [{ slug: "audit.*", role: "auditor" }] },
      { slug: "carts.read", isHeld: true, by: [{ slug: "carts.read" }] },
    ]);
    expect(stepOf(explained, "permissions")).toEqual({
      step: "permissions",
      result: "passed",
      decisive: false,
      observed: "invoices.write, audit.read, carts.read",
      detail:
        "The key holds what is needed: invoices.write by the role writer, audit.read as audit.* by the role auditor, carts.read itself.",
      sources: [
        { kind: "key", id: "key_7", ageMs: 850 },
        { kind: "role", id: "role_3", name: "writer", ageMs: 850 },
        { kind: "role", id: "role_8", name: "auditor", ageMs: 850 },
      ],
    });
  });

  test("explain omits roles that do not grant the requested permission", async () => {
    const explained = await explain(partsOf().parts, asking(aKeyView(), { readQuery: () => parseQuery("audit.read") }));
    expect(stepOf(explained, "permissions")?.sources).toMatchObject([{ kind: "role", id: "role_8" }]);
    const lacking = await explain(partsOf().parts, asking(aKeyView(), { readQuery: () => parseQuery("no.such") }));
    expect(stepOf(lacking, "permissions")?.sources).toMatchObject([{ kind: "key", id: "key_7" }]);
  });

  test("explain shows the override pattern, the replaced limit and the current count", async () => {
    const override = { id: "rlor_1", identifier: "al*", limit: 3, durationMs: MINUTE, async: true };
    const { parts, counters } = partsOf({ overrides: { alice: { status: "found", value: override } } });
    await counters.consume({ limits: [{ ...NAMESPACE, limit: 3, cost: 2 }] });
    const { explained } = await explain(parts, asking(aKeyView(), shared));
    expect(explained.limits).toEqual([
      {
        name: "rlns_6",
        namespace: "public",
        source: "namespace",
        identifier: "alice",
        limit: 3,
        duration: MINUTE,
        cost: 1,
        used: 2,
        remaining: 1,
        passed: true,
        reset: NOW_MS + MINUTE,
        async: true,
        overridden: true,
        override: { id: "rlor_1", identifier: "al*", limitBefore: 10, durationBefore: MINUTE },
      },
    ]);
    expect(explained.steps.find(({ step }) => step === "limits")?.sources).toEqual([
      { kind: "override", id: "rlor_1", name: "al*", ageMs: 850 },
      { kind: "counter", id: "", ageMs: 0 },
    ]);
  });

  test("explain attributes a limit of the identity to the identity", async () => {
    const identity = anIdentityRecord({ ratelimits: [aRatelimitRecord("calls", { autoApply: true })] });
    const { explained } = await explain(partsOf().parts, asking(aKeyView({ identity })));
    expect(explained.limits).toMatchObject([{ name: "calls", source: "identity", identifier: "id_5" }]);
    expect(explained.steps.find(({ step }) => step === "limits")?.sources[0]).toEqual({
      kind: "identity",
      id: "id_5",
      name: "alice",
      ageMs: 850,
    });
  });

  test("explain shows the matching entry of the allow-list, and reports an unknown data age as −1", async () => {
    const view = aKeyView({ api: { id: "api_9", name: "orders", ipAllowList: ["192.0.2.1", "10.0.0.0/8"] } });
    const { parts } = partsOf({ recordsAgeMs: () => Number.POSITIVE_INFINITY });
    const explained = await explain(parts, asking(view, { clientIp: "10.1.2.3" }));
    expect(stepOf(explained, "address")).toMatchObject({
      result: "passed",
      detail: "10.1.2.3 is on the allow-list of the API, by 10.0.0.0/8.",
      sources: [{ kind: "api", ageMs: -1 }, { kind: "request" }],
    });
  });
});

describe("the counters are unavailable", () => {
  test.each<{ name: string; withoutStore: WithoutStore; code: string; decisive: string[] }>([
    {
      name: "a policy that admits requests uncounted admits them",
      withoutStore: { onCounterFailure: "Allow", onCreditFailure: "Allow" },
      code: "VALID",
      decisive: [],
    },
    {
      name: "one that denies them does not decide",
      withoutStore: { onCounterFailure: "Deny", onCreditFailure: "Deny" },
      code: "UNKNOWN",
      decisive: ["limits"],
    },
    {
      name: "one that counts in each pod lets it through, as far as a pod has counted nothing",
      withoutStore: { onCounterFailure: "Local", onCreditFailure: "Deny" },
      code: "VALID",
      decisive: [],
    },
    {
      name: "so does one that shares the limit among the pods",
      withoutStore: { onCounterFailure: "LocalShare", onCreditFailure: "Deny" },
      code: "VALID",
      decisive: [],
    },
  ])(
    "explain without counters has the expected code and decisive steps: $name",
    async ({ withoutStore, code, decisive }) => {
      const explained = await explain(partsOf(away).parts, asking(limited(), { withoutStore: () => withoutStore }));
      expect(explained.code).toBe(code);
      expect(explained.explained.steps.flatMap((step) => (step.decisive ? [step.step] : []))).toEqual(decisive);
      expect(stepOf(explained, "limits")).toMatchObject({ result: "skipped", observed: "no answer" });
    },
  );

  const gate = { policy: { id: "pol_1", name: "main/shop/orders", ageMs: 0 } };
  const without = (onCounterFailure: WithoutStore["onCounterFailure"]) => ({
    withoutStore: (): WithoutStore => ({ onCounterFailure, onCreditFailure: "Deny" }),
  });

  test.each<{ done: WithoutStore["onCounterFailure"]; words: string[] }>([
    { done: "Allow", words: ["onCounterFailure is Allow", "through uncounted"] },
    { done: "Deny", words: ["onCounterFailure is Deny", "503"] },
    { done: "Local", words: ["onCounterFailure is Local,", "known to it alone", "taken for nothing", "429"] },
    { done: "LocalShare", words: ["Local with the budget PerPod", "share", "known to it alone", "429"] },
  ])("explain without counters describes what a gate does with $done, and what is unknown", async ({ done, words }) => {
    const explained = await explain(partsOf(away).parts, asking(limited(), without(done)), gate);
    const step = stepOf(explained, "limits");
    for (const said of ["The shared counters were not reached.", ...words]) expect(step?.detail).toContain(said);
    expect(step?.sources).toEqual([
      { kind: "policy", ...gate.policy },
      { kind: "counter", id: "", ageMs: -1 },
    ]);
    expect(explained.explained.limits).toEqual([]);
  });

  test("explain of an API call falls back to counting in the api-server, because no policy applies", async () => {
    const step = stepOf(await explain(partsOf(away).parts, asking(limited(), without("Local"))), "limits");
    expect(step?.detail).toContain("keys.verifyKey then counts in the process of the api-server");
    expect(step?.detail).not.toContain("policy");
  });

  test("explain denies a cost above the limit even without counters", async () => {
    const plan = (view: KeyView): ChargePlan => ({ ...ownPlan(view), shared: [{ ...NAMESPACE, cost: 11 }] });
    const explained = await explain(partsOf(away).parts, asking(aKeyView(), { ...without("Local"), plan }), gate);
    expect(explained.code).toBe("RATE_LIMITED");
    expect(stepOf(explained, "limits")).toMatchObject({ result: "refused", decisive: true });
    expect(stepOf(explained, "limits")?.detail).toContain("costs more than a whole limit");
  });

  test("explain ignores onCounterFailure for limits that each gate counts locally", async () => {
    const plan = (view: KeyView): ChargePlan => ({
      ...ownPlan(view),
      shared: [{ ...NAMESPACE, accuracy: "local" }],
    });
    const explained = await explain(partsOf(away).parts, asking(aKeyView(), { ...without("Deny"), plan }), gate);
    expect(explained.code).toBe("VALID");
    expect(stepOf(explained, "limits")?.detail).toContain("in its own pod in any case (async)");
  });

  test("explain names the credits as decisive when limits pass and credits are insufficient", async () => {
    const lost = { ...away, readCredits: () => Promise.reject(new CountersUnavailable("away")) };
    const view = aKeyView({ key: { ...limited().key, limited: true } });
    for (const done of ["Local", "Allow"] as const) {
      const explained = await explain(partsOf(lost).parts, asking(view, without(done)), gate);
      expect(explained.code).toBe("UNKNOWN");
      expect(explained.explained.steps.filter(({ decisive }) => decisive)).toMatchObject([
        { step: "credits", detail: expect.stringContaining("onCreditFailure is Deny") },
      ]);
    }
  });

  test("explain treats an unreadable override as unknown, not as unlimited", async () => {
    const { parts } = partsOf({ overrides: { alice: { status: "unusable", reason: "nothing is projected" } } });
    const explained = await explain(parts, asking(aKeyView(), { ...without("Deny"), ...shared }), gate);
    expect(explained.code).toBe("UNKNOWN");
    expect(stepOf(explained, "limits")).toMatchObject({ result: "skipped", observed: "no answer", decisive: true });
  });

  test("explain calls the counters once, even for a key with a cached denial", async () => {
    let asked = 0;
    const { parts } = partsOf({
      peekLimits: () => {
        asked += 1;
        return away.peekLimits();
      },
    });
    const view = aKeyView({ key: { enabled: false, ratelimits: limited().key.ratelimits } });
    expect((await explain(parts, asking(view))).code).toBe("DISABLED");
    await explain(parts, asking(limited()));
    expect(asked).toBe(2);
  });
});

describe("what fails", () => {
  test("explain rejects an invalid permission query as a client error", async () => {
    const verification = asking(aKeyView(), { readQuery: () => parseQuery("a AND") });
    await expect(explain(partsOf().parts, verification)).rejects.toThrow("Position 5");
  });

  test("after a decisive step, explain skips later steps that fail and shows their errors as details", async () => {
    const verification = asking(aKeyView({ key: { enabled: false } }), {
      plan: () => {
        throw new Error("The rate limit none is not attached.");
      },
    });
    const explained = await explain(partsOf().parts, verification);
    expect(explained.code).toBe("DISABLED");
    expect(stepOf(explained, "limits")).toMatchObject({
      result: "skipped",
      detail: "The rate limit none is not attached.",
    });
  });

  test("explain shows nothing about a key that the caller may not read", async () => {
    const hidden: unknown[] = [];
    const view = aKeyView({ key: { enabled: false, keyId: "key_secret" } });
    const explained = await explain(partsOf().parts, asking(view, { maySee: () => false }), {
      sayNotFound: (key) => {
        hidden.push(key?.keyId);
        return "There is none.";
      },
    });
    expect(explained).toMatchObject({ code: "NOT_FOUND", view: undefined });
    expect(JSON.stringify(explained)).not.toContain("key_secret");
    expect(hidden).toEqual(["key_secret"]);
  });

  test("explain reports a failed key lookup as unknown rather than absent", async () => {
    const explained = await explain(partsOf().parts, asking({ status: "unusable", reason: "nothing is projected" }));
    expect(explained.code).toBe("UNKNOWN");
    expect(explained.explained.steps).toMatchObject([
      { step: "found", result: "skipped", decisive: true, detail: "It cannot be looked up now: nothing is projected" },
    ]);
  });
});

test("explain does not deny a key whose credits are now unlimited", async () => {
  const view = aKeyView({ key: { limited: true } });
  const explained = await explain(partsOf({ readCredits: async () => undefined }).parts, asking(view));
  expect(explained).toMatchObject({ code: "VALID" });
  expect(stepOf(explained, "credits")?.detail).toContain("has had unlimited credits since");
});
