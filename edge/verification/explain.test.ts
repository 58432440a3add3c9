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
import { type ExplainParts, explain } from "./explain.ts";
import type { Verification } from "./verify.ts";

const NOW_MS = 1_800_000_000_000;
const MINUTE = 60_000;

interface Given extends Partial<Omit<ExplainParts, "projection">> {
  readonly overrides?: Readonly<Record<string, Lookup<OverrideRecord>>>;
}

function partsOf({ overrides = {}, ...given }: Given = {}) {
  const counters = new MemoryCounters(new MemoryStore(() => NOW_MS));
  const parts: ExplainParts = {
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
  test("a permission is said with the role that gives it, by the name under which it is held", async () => {
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
      decides: false,
      saw: "invoices.write, audit.read, carts.read",
      detail:
        "The key holds what is needed: invoices.write by the role writer, audit.read as audit.* by the role auditor, carts.read itself.",
      sources: [
        { kind: "key", id: "key_7", ageMs: 850 },
        { kind: "role", id: "role_3", name: "writer", ageMs: 850 },
        { kind: "role", id: "role_8", name: "auditor", ageMs: 850 },
      ],
    });
  });

  test("roles that do not give what is asked for are no source", async () => {
    const explained = await explain(partsOf().parts, asking(aKeyView(), { readQuery: () => parseQuery("audit.read") }));
    expect(stepOf(explained, "permissions")?.sources).toMatchObject([{ kind: "role", id: "role_8" }]);
    const lacking = await explain(partsOf().parts, asking(aKeyView(), { readQuery: () => parseQuery("no.such") }));
    expect(stepOf(lacking, "permissions")?.sources).toMatchObject([{ kind: "key", id: "key_7" }]);
  });

  test("an override is said with its pattern and with what it replaces, and the count as it stands", async () => {
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

  test("a limit of the identity is said to be the identity's", async () => {
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

  test("an entry of the allow-list is said, and an age that is not known is −1", async () => {
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

describe("while the counters do not answer", () => {
  test.each<{ name: string; withoutStore: WithoutStore; code: string; decides: string[] }>([
    {
      name: "a policy that admits requests uncounted admits them",
      withoutStore: { onCounterFailure: "Allow", onCreditFailure: "Allow" },
      code: "VALID",
      decides: [],
    },
    {
      name: "one that denies them does not decide",
      withoutStore: { onCounterFailure: "Deny", onCreditFailure: "Deny" },
      code: "UNKNOWN",
      decides: ["limits"],
    },
    {
      name: "what a process counts alone is not known",
      withoutStore: { onCounterFailure: "Local", onCreditFailure: "Deny" },
      code: "UNKNOWN",
      decides: ["limits"],
    },
  ])("$name", async ({ withoutStore, code, decides }) => {
    const explained = await explain(partsOf(away).parts, asking(limited(), { withoutStore: () => withoutStore }));
    expect(explained.code).toBe(code);
    expect(explained.explained.steps.flatMap((step) => (step.decides ? [step.step] : []))).toEqual(decides);
    expect(stepOf(explained, "limits")).toMatchObject({ result: "skipped", saw: "no answer" });
  });

  test("they are asked once, also for a key that was refused before", async () => {
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
  test("a question that cannot be read is the caller's error, as in a verification", async () => {
    const verification = asking(aKeyView(), { readQuery: () => parseQuery("a AND") });
    await expect(explain(partsOf().parts, verification)).rejects.toThrow("Position 5");
  });

  test("after the step that decided nothing fails any more: it is told why the step says nothing", async () => {
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

  test("of a key that the caller may not see nothing is said, whatever is wrong with it", async () => {
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

  test("a key that cannot be looked up is neither there nor not there", async () => {
    const explained = await explain(partsOf().parts, asking({ status: "unusable", reason: "nothing is projected" }));
    expect(explained.code).toBe("UNKNOWN");
    expect(explained.explained.steps).toMatchObject([
      { step: "found", result: "skipped", decides: true, detail: "It cannot be looked up now: nothing is projected" },
    ]);
  });
});

test("credits that are not limited any more are no reason to refuse", async () => {
  const view = aKeyView({ key: { limited: true } });
  const explained = await explain(partsOf({ readCredits: async () => undefined }).parts, asking(view));
  expect(explained).toMatchObject({ code: "VALID" });
  expect(stepOf(explained, "credits")?.detail).toContain("has had unlimited credits since");
});
