import { afterEach, expect, test } from "vitest";
import type { LimitCharge } from "../../core/charges.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type ChargePlan, planCall } from "../../core/verification/plan-charges.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import { LocalCounters } from "../../edge/counters/local.ts";
import { counterName } from "../../edge/counters/memory.ts";
import type { StrictCounters } from "../../edge/counters/strict.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import type { WithoutStore } from "../../edge/verification/count.ts";
import { explain } from "../../edge/verification/explain.ts";
import { type Verification, verify } from "../../edge/verification/verify.ts";
import { createCounting } from "../../sidecar/decision/counting.ts";
import { aKeyView, aRatelimitRecord } from "../builders/key-view.ts";

/* Without the shared counters, an explanation describes a gate that has counted nothing yet. */

const HOUR_MS = 3_600_000;

const store: StrictCounters = {
  consume: () => Promise.reject(new CountersUnavailable("away")),
  close: async () => undefined,
};

let gates: LocalCounters[] = [];
afterEach(async () => {
  await Promise.all(gates.map((gate) => gate.close()));
  gates = [];
});

const projection = {
  findOverride: async () => ({ status: "absent" }),
  findNamespace: async () => ({ status: "absent" }),
} as unknown as Projection;

/** Returns the counters of a gate that has just started. */
function aGate() {
  const counters = new LocalCounters(store, { keyOf: counterName, sync: async () => undefined });
  gates.push(counters);
  const counting = createCounting({
    projection,
    counters: { consume: (request) => counters.consume(request), addLater: () => undefined },
    podsAlive: () => 1,
    nowMs: Date.now,
    creditLoadMs: 0,
    onFailure: () => undefined,
  });
  return { ...counting, nowMs: Date.now };
}

const explaining = {
  nowMs: Date.now,
  projection,
  recordsAgeMs: () => 0,
  peekLimits: () => store.consume({ limits: [] }),
  readCredits: () => Promise.reject(new CountersUnavailable("away")),
};

const shared = (of: Partial<LimitCharge>): LimitCharge => ({
  workspaceId: "ws_2",
  scope: { kind: "namespace", value: "rlns_6" },
  identifier: "alice",
  limit: 10,
  durationMs: HOUR_MS,
  cost: 1,
  accuracy: "strict",
  ...of,
});

const CHARGES: readonly { name: string; own: number | undefined; shared: LimitCharge[]; limited: boolean }[] = [
  { name: "nothing", own: undefined, shared: [], limited: false },
  { name: "a strict limit", own: 5, shared: [], limited: false },
  { name: "an async limit", own: undefined, shared: [shared({ accuracy: "local" })], limited: false },
  { name: "both", own: 5, shared: [shared({ accuracy: "local" })], limited: false },
  {
    name: "an async limit that is too small",
    own: 5,
    shared: [shared({ accuracy: "local", cost: 11 })],
    limited: false,
  },
  {
    name: "an async one alone that is too small",
    own: undefined,
    shared: [shared({ accuracy: "local", cost: 11 })],
    limited: false,
  },
  { name: "a strict limit that is too small", own: undefined, shared: [shared({ cost: 11 })], limited: false },
  { name: "credits", own: undefined, shared: [], limited: true },
  { name: "a strict limit and credits", own: 5, shared: [], limited: true },
  { name: "an async limit and credits", own: undefined, shared: [shared({ accuracy: "local" })], limited: true },
];

const FAILURES = (["Local", "LocalShare", "Deny", "Allow"] as const).flatMap((onCounterFailure) =>
  (["Deny", "Allow"] as const).map((onCreditFailure): WithoutStore => ({ onCounterFailure, onCreditFailure })),
);

const cases = CHARGES.flatMap((charged) =>
  FAILURES.map((withoutStore) => ({ ...charged, withoutStore, ...withoutStore })),
);

test.each(cases)(
  "explanation without counters agrees with the gate: $name, $onCounterFailure, credits $onCreditFailure",
  async ({ own, shared, limited, withoutStore }) => {
    const ratelimits =
      own === undefined ? [] : [aRatelimitRecord("own", { limit: own, durationMs: HOUR_MS, autoApply: true })];
    const view = aKeyView({ key: { ratelimits, limited } });
    const verification: Verification = {
      clientIp: undefined,
      find: () => ({ status: "found", value: view }),
      maySee: () => true,
      readQuery: () => undefined,
      plan: (seen: KeyView): ChargePlan => {
        const plan = planCall(seen, { ratelimits: [], creditCost: 1 });
        if (!("limits" in plan)) throw new Error("nothing was named");
        return { ...plan, shared };
      },
      withoutStore: () => withoutStore,
    };
    const decided = await verify(aGate(), verification);
    const { code, explained } = await explain(explaining, verification);
    expect(code).toBe(decided.kind === "decided" ? decided.code : "UNKNOWN");
    const deciding = explained.steps.filter(({ decisive }) => decisive).map(({ step }) => step);
    const expected = decided.kind === "uncountable" ? [decided.what] : code === "RATE_LIMITED" ? ["limits"] : [];
    expect(deciding).toEqual(expected);
  },
);
