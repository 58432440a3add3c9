import { describe, expect, test } from "vitest";
import type { CreditOutcome, LimitCharge } from "../../core/charges.ts";
import { parseQuery } from "../../core/permissions/query.ts";
import type { KeyRecord, OverrideRecord } from "../../core/records.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type ChargePlan, planCall } from "../../core/verification/plan-charges.ts";
import { aKeyView, aRatelimitRecord } from "../../test/builders/key-view.ts";
import { type ConsumeRequest, type Counters, CountersUnavailable } from "../counters/contract.ts";
import { MemoryCounters, MemoryStore } from "../counters/memory.ts";
import type { Lookup, MaybePromise } from "../projection/contract.ts";
import type { WithoutStore } from "./count.ts";
import { type Verification, type VerifyDeps, verify, verifyAgain } from "./verify.ts";

const NOW_MS = 1_800_000_000_000;
const STRICT: WithoutStore = { onCounterFailure: "Deny", onCreditFailure: "Deny" };

/** A caller with only the required members, unlike a policy rule or keys.verifyKey. */
class AnyCaller implements Verification {
  readonly clientIp: string | undefined = undefined;
  readonly asked: string[] = [];
  readonly #found: MaybePromise<Lookup<KeyView>>;
  readonly #of: Partial<Verification>;

  constructor(found: KeyView | MaybePromise<Lookup<KeyView>>, of: Partial<Verification> = {}) {
    this.#found = "key" in found ? { status: "found", value: found } : found;
    this.#of = of;
  }

  find() {
    return this.#found;
  }

  maySee(key: KeyRecord) {
    this.asked.push("maySee");
    return this.#of.maySee?.(key) ?? true;
  }

  readQuery() {
    this.asked.push("readQuery");
    return this.#of.readQuery?.();
  }

  plan(view: KeyView): ChargePlan {
    this.asked.push("plan");
    return this.#of.plan?.(view) ?? ownPlan(view);
  }

  withoutStore(plan: ChargePlan) {
    return this.#of.withoutStore?.(plan) ?? STRICT;
  }
}

function ownPlan(view: KeyView, creditCost = 1): ChargePlan {
  const plan = planCall(view, { ratelimits: [], creditCost });
  if (!("limits" in plan)) throw new Error("nothing was named");
  return plan;
}

const AWAY = new CountersUnavailable("away");
const away: Pick<Counters, "consume"> = { consume: () => Promise.reject(AWAY) };

interface Given extends Partial<VerifyDeps> {
  readonly overrides?: Readonly<Record<string, Lookup<OverrideRecord>>>;
}

function partsOf({ overrides = {}, ...given }: Given = {}) {
  const uncounted: string[] = [];
  const counters = new MemoryCounters(new MemoryStore(() => NOW_MS));
  const local = new MemoryCounters(new MemoryStore(() => NOW_MS));
  const parts: VerifyDeps = {
    nowMs: () => NOW_MS,
    counters,
    projection: {
      findOverride: async (workspaceId, namespaceId, identifier) =>
        (workspaceId === "ws_2" && namespaceId === "rlns_6" ? overrides[identifier] : undefined) ?? {
          status: "absent",
        },
    },
    countLocally: (limits) => local.consume({ limits }),
    loadAndSpend: () => Promise.reject(new Error("nothing is to be loaded")),
    onUncounted: (what, done) => void uncounted.push(`${what}: ${done}`),
    ...given,
  };
  return { parts, uncounted };
}

/** Returns a key with a limit of one per minute that its plan names. */
const limited = () => aKeyView({ key: { ratelimits: [aRatelimitRecord("calls", { limit: 1, autoApply: true })] } });
const withCredits = () => aKeyView({ key: { limited: true } });

describe("the order of a verification", () => {
  const { parts } = partsOf();

  test.each([
    { name: "a key that is not there", found: { status: "absent" } as const, asked: [] },
    { name: "a key of an API that was deleted", found: aKeyView({ api: undefined }), asked: ["maySee"] },
  ])("verify returns NOT_FOUND before parsing the query for $name", async ({ found, asked }) => {
    const caller = new AnyCaller(found);
    expect(await verify(parts, caller)).toMatchObject({ kind: "decided", code: "NOT_FOUND", view: undefined });
    expect(caller.asked).toEqual(asked);
  });

  test("verify returns the same NOT_FOUND for missing and forbidden keys", async () => {
    const caller = new AnyCaller(aKeyView({ key: { enabled: false, expiresMs: 0 } }), {
      maySee: ({ apiId }) => apiId !== "api_9",
      readQuery: () => parseQuery("AND"),
    });
    expect(await verify(parts, caller)).toMatchObject({ code: "NOT_FOUND", view: undefined });
  });

  test("verify charges nothing for a rejected key, and reports an invalid query instead of the rejection", async () => {
    const disabled = aKeyView({ key: { enabled: false, limited: true } });
    const caller = new AnyCaller(disabled);
    expect(await verify(parts, caller)).toMatchObject({ code: "DISABLED", view: disabled, counted: undefined });
    expect(caller.asked).toEqual(["maySee", "readQuery"]);
    const mistaken = new AnyCaller(disabled, { readQuery: () => parseQuery("a AND") });
    expect(() => verify(parts, mistaken)).toThrow();
  });

  test("verify returns unknown when a lookup fails", async () => {
    const found = { status: "unusable", reason: "the store is away" } as const;
    const expected = { kind: "unknown", reason: "the store is away" };
    expect(verify(parts, new AnyCaller(found))).toEqual(expected);
    expect(await verifyAgain(parts, new AnyCaller(found))).toEqual(expected);
  });

  test("verify decides synchronously for a cached key without limits or credits", async () => {
    const now = verify(parts, new AnyCaller(aKeyView()));
    expect(now).toMatchObject({ code: "VALID", counted: undefined });
    const late = verify(parts, new AnyCaller(Promise.resolve({ status: "found", value: aKeyView() } as const)));
    expect(late).toBeInstanceOf(Promise);
    expect(await late).toMatchObject({ code: "VALID" });
  });

  test("verifyAgain charges nothing", async () => {
    const consumed: ConsumeRequest[] = [];
    const consume = (one: ConsumeRequest) => {
      consumed.push(one);
      return Promise.reject(AWAY);
    };
    const { parts } = partsOf({ counters: { consume } });
    expect(await verifyAgain(parts, new AnyCaller(limited()))).toMatchObject({ code: "VALID" });
    expect(consumed).toEqual([]);
  });
});

describe("what is counted", () => {
  test("verify charges limits until one denies, and reports which one", async () => {
    const { parts } = partsOf();
    const caller = new AnyCaller(limited());
    expect(await verify(parts, caller)).toMatchObject({ code: "VALID", counted: { limits: [{ limit: 1 }] } });
    expect(await verify(parts, caller)).toMatchObject({
      code: "RATE_LIMITED",
      counted: { consumed: { limits: [{ passed: false, remaining: 0 }] }, spentCredits: 0 },
    });
  });

  test("verify charges named limits first, then namespace limits, whose overrides apply", async () => {
    const override = { id: "rlor_3", identifier: "alice", limit: 7, durationMs: 5_000, async: false };
    const { parts } = partsOf({ overrides: { alice: { status: "found", value: override } } });
    const shared = (identifier: string): LimitCharge => ({
      workspaceId: "ws_2",
      scope: { kind: "namespace", value: "rlns_6" },
      identifier,
      limit: 2,
      durationMs: 60_000,
      cost: 1,
      accuracy: "strict",
    });
    const plan = (view: KeyView): ChargePlan => ({
      ...ownPlan(view),
      shared: ["bob", "alice"].map(shared),
    });
    expect(await verify(parts, new AnyCaller(limited(), { plan }))).toMatchObject({
      code: "VALID",
      counted: {
        limits: [
          { scope: { value: "calls" } },
          { identifier: "bob", limit: 2, durationMs: 60_000 },
          { identifier: "alice", limit: 7, durationMs: 5_000 },
        ],
      },
    });
  });

  test.each([
    { name: "spent", loaded: { status: "spent", remaining: 4 } as const, code: "VALID", spentCredits: 1 },
    { name: "too few", loaded: { status: "refused", remaining: 0 } as const, code: "USAGE_EXCEEDED", spentCredits: 0 },
    { name: "unlimited by now", loaded: undefined, code: "VALID", spentCredits: 0 },
  ])("verify loads missing credits and charges again: $name", async ({ loaded, code, spentCredits }) => {
    const charged: ConsumeRequest[] = [];
    const { parts } = partsOf({
      counters: {
        consume: async (request) => {
          charged.push(request);
          return { nowMs: NOW_MS, limits: [], passed: true, credits: { status: "unknown" } };
        },
      },
      loadAndSpend: async (): Promise<CreditOutcome | undefined> => loaded,
    });
    expect(await verify(parts, new AnyCaller(withCredits()))).toMatchObject({ code, counted: { spentCredits } });
    expect(charged.length).toBe(1);
  });
});

describe("credits that stay unknown", () => {
  /** Returns counters that count limits but never have the credits loaded. */
  const unloaded = () =>
    partsOf({
      counters: {
        consume: async () => ({
          nowMs: NOW_MS,
          limits: [{ passed: true, remaining: 0, resetMs: NOW_MS + 1 }],
          passed: true,
          credits: { status: "unknown" },
        }),
      },
      loadAndSpend: async () => ({ status: "unknown" }),
    });
  const withBoth = () => {
    const view = limited();
    return aKeyView({ key: { ...view.key, limited: true } });
  };

  test("onCreditFailure Deny leaves a request with unknown credits undecided and reports no error as the cause", async () => {
    const { parts, uncounted } = unloaded();
    const verdict = await verify(parts, new AnyCaller(withBoth()));
    expect(verdict).toEqual({ kind: "uncountable", what: "credits", cause: undefined });
    expect(uncounted).toEqual(["credits: Deny"]);
  });

  test("onCreditFailure Allow admits unknown credits unspent, and reports the counted limits", async () => {
    const { parts, uncounted } = unloaded();
    const caller = new AnyCaller(withBoth(), {
      withoutStore: () => ({ onCounterFailure: "Deny", onCreditFailure: "Allow" }),
    });
    expect(await verify(parts, caller)).toMatchObject({
      kind: "decided",
      code: "VALID",
      counted: { spentCredits: 0, consumed: { limits: [{ remaining: 0 }], credits: undefined } },
    });
    expect(uncounted).toEqual(["credits: Allow"]);
  });
});

test("verify spends loaded credits in the same call as the limits", async () => {
  const requests: ConsumeRequest[] = [];
  const { parts } = partsOf({
    counters: {
      consume: async (request) => {
        requests.push(request);
        return { nowMs: NOW_MS, limits: [], passed: true, credits: { status: "spent", remaining: 2 } };
      },
    },
  });
  const verdict = await verify(parts, new AnyCaller(withCredits(), { plan: (view) => ownPlan(view, 3) }));
  expect(verdict).toMatchObject({ kind: "decided", code: "VALID", counted: { spentCredits: 3 } });
  expect(requests).toMatchObject([{ credits: { keyId: "key_7", cost: 3 } }]);
});

test("verify fails with an internal error when counters omit charged credits", async () => {
  const { parts } = partsOf({ counters: { consume: async () => ({ nowMs: NOW_MS, limits: [], passed: true }) } });
  await expect(verify(parts, new AnyCaller(withCredits()))).rejects.toThrow("credits");
});

describe("the shared counters are unavailable", () => {
  const caller = (
    view: KeyView,
    onCounterFailure: WithoutStore["onCounterFailure"],
    onCreditFailure = "Deny" as const,
  ) => new AnyCaller(view, { withoutStore: () => ({ onCounterFailure, onCreditFailure }) });

  test("onCounterFailure Deny returns undecided with the Redis error as its cause", async () => {
    const { parts, uncounted } = partsOf({ counters: away });
    const verdict = await verify(parts, caller(limited(), "Deny"));
    expect(verdict).toEqual({ kind: "uncountable", what: "limits", cause: AWAY });
    expect(uncounted).toEqual(["limits: Deny"]);
  });

  test("onCounterFailure Allow admits requests uncounted", async () => {
    const { parts, uncounted } = partsOf({ counters: away });
    const verdict = await verify(parts, caller(limited(), "Allow"));
    expect(verdict).toMatchObject({ code: "VALID", counted: { consumed: undefined, spentCredits: 0 } });
    expect(uncounted).toEqual(["limits: Allow"]);
  });

  test("onCounterFailure Local counts in the process and denies above the limit", async () => {
    const { parts, uncounted } = partsOf({ counters: away });
    const codes = [];
    for (let i = 0; i < 2; i++) codes.push(await verify(parts, caller(limited(), "Local")));
    expect(codes).toMatchObject([{ code: "VALID" }, { code: "RATE_LIMITED" }]);
    expect(uncounted).toEqual(["limits: Local", "limits: Local"]);
  });

  test("local limit denials take precedence over credits that cannot be counted", async () => {
    const { parts, uncounted } = partsOf({ counters: away });
    const { key } = limited();
    const view = aKeyView({ key: { ...key, limited: true } });
    const verdicts = [await verify(parts, caller(view, "Local")), await verify(parts, caller(view, "Local"))];
    expect(verdicts).toMatchObject([
      { kind: "uncountable", what: "credits" },
      { kind: "decided", code: "RATE_LIMITED" },
    ]);
    expect(uncounted).toEqual(["limits: Local", "credits: Deny", "limits: Local"]);
  });

  test("credits follow their own failure policy, and counted limits stay counted", async () => {
    const { parts, uncounted } = partsOf({ counters: away });
    const [denied, allowed] = await Promise.all([
      verify(parts, new AnyCaller(withCredits())),
      verify(
        parts,
        new AnyCaller(withCredits(), {
          withoutStore: () => ({ onCounterFailure: "Deny", onCreditFailure: "Allow" }),
        }),
      ),
    ]);
    expect(denied).toEqual({ kind: "uncountable", what: "credits", cause: AWAY });
    expect(allowed).toMatchObject({ code: "VALID", counted: { spentCredits: 0 } });
    expect(uncounted).toEqual(["credits: Deny", "credits: Allow"]);
  });

  test("verify uses the plan limit when override lookup fails", async () => {
    const { parts, uncounted } = partsOf({ overrides: { alice: { status: "unusable", reason: "away" } } });
    const plan = (view: KeyView): ChargePlan => ({
      ...ownPlan(view),
      shared: [
        {
          workspaceId: "ws_2",
          scope: { kind: "namespace", value: "rlns_6" },
          identifier: "alice",
          limit: 1,
          durationMs: 60_000,
          cost: 1,
          accuracy: "strict",
        },
      ],
    });
    const local = () =>
      new AnyCaller(aKeyView(), {
        plan,
        withoutStore: () => ({ onCounterFailure: "Local", onCreditFailure: "Deny" }),
      });
    expect(await verify(parts, local())).toMatchObject({ code: "VALID" });
    expect(await verify(parts, local())).toMatchObject({ code: "RATE_LIMITED" });
    expect(uncounted).toEqual(["limits: Local", "limits: Local"]);
  });

  test("verify does not treat an internal error as an outage", async () => {
    const { parts } = partsOf({ counters: { consume: () => Promise.reject(new TypeError("a fault")) } });
    await expect(verify(parts, caller(limited(), "Allow"))).rejects.toThrow("a fault");
  });
});
