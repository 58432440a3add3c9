import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../core/charges.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type CountedCode, codeAfterCounting } from "../../core/verification/conclude.ts";
import type { ChargePlan } from "../../core/verification/plan-charges.ts";
import { type Counters, CountersUnavailable } from "../counters/contract.ts";
import type { Projection } from "../projection/contract.ts";
import { type AppliedLimits, applyOverrides } from "./apply-overrides.ts";

/*
 * Charges a plan in one round trip, and decides what to do if the shared counters are unreachable. If credits are refused, the limits stay
 * charged.
 */

export interface CountingDeps {
  readonly counters: Pick<Counters, "consume">;
  readonly projection: Pick<Projection, "findOverride">;
  /** Counts limits in this process, without the shared store. With `LocalShare` the process admits only its share of each limit. */
  countLocally(limits: readonly LimitCharge[], how: "Local" | "LocalShare"): Promise<Consumed>;
  /**
   * Loads the credit counter of a key and charges it. Returns `unknown` if it is still not loaded, and `undefined` if the key is now
   * unlimited or deleted. May throw `CountersUnavailable`.
   */
  loadAndSpend(charge: CreditCharge): Promise<CreditOutcome | undefined>;
  /** Called each time limits or credits could not be counted. `done` is the fallback that was used. */
  onUncounted(what: "limits" | "credits", done: WithoutStore["onCounterFailure"], cause: unknown): void;
}

/**
 * Fallback without the shared counters. `onCounterFailure` applies to limits: `Deny` returns `Uncountable`, `Allow` admits the request
 * uncounted, `Local` and `LocalShare` count it in this process. `onCreditFailure` applies to credits: `Deny` or `Allow`.
 */
export type WithoutStore = Pick<CompiledPolicy, "onCounterFailure" | "onCreditFailure">;

export interface Counting {
  readonly plan: Pick<ChargePlan, "limits" | "shared" | "credits">;
  readonly withoutStore: WithoutStore;
}

export interface Counted {
  readonly kind: "counted";
  readonly code: CountedCode;
  /** The charged limits, with overrides: the named limits of the plan, then the namespace limits. */
  readonly limits: readonly LimitCharge[];
  /** Result of the counters; `undefined` if they are unreachable and the policy admits uncounted requests. */
  readonly consumed: Consumed | undefined;
  readonly spentCredits: number;
}

/** Outcome if the counters are unreachable and the policy does not admit uncounted requests. */
export interface Uncountable {
  readonly kind: "uncountable";
  readonly what: "limits" | "credits";
  /** The store's error; `undefined` if the store responded but the credits are not loaded. */
  readonly cause: unknown;
}

/** Charges a plan. Rejects only with internal errors and with errors of `loadAndSpend`. */
export function count(parts: CountingDeps, counting: Counting): Promise<Counted | Uncountable> {
  const { plan } = counting;
  // Most plans have no namespace limits, so no overrides need to be looked up.
  if (plan.shared.length === 0) return consume(parts, counting, plan.limits);
  const consumeApplied = (applied: AppliedLimits) =>
    "unusable" in applied
      ? countWithoutStore(parts, counting, new Error(applied.unusable))
      : consume(parts, counting, [...plan.limits, ...applied.limits.map(({ charge }) => charge)]);
  const applied = applyOverrides(parts.projection, plan.shared);
  return applied instanceof Promise ? applied.then(consumeApplied) : consumeApplied(applied);
}

function consume(
  parts: CountingDeps,
  counting: Counting,
  limits: readonly LimitCharge[],
): Promise<Counted | Uncountable> {
  const { credits } = counting.plan;
  return parts.counters.consume({ limits, credits }).then(
    (consumed) => {
      if (credits === undefined) return conclude(limits, consumed, undefined);
      if (consumed.credits === undefined) throw new Error("credits were charged, and the counters say nothing of them");
      return consumed.credits.status === "unknown"
        ? loadCredits(parts, counting, { limits, consumed, charge: credits })
        : conclude(limits, consumed, credits);
    },
    (error: unknown) => {
      if (!(error instanceof CountersUnavailable)) throw error;
      return countWithoutStore(parts, counting, error);
    },
  );
}

/** Charges only the credits, because the limits are already charged. */
async function loadCredits(
  parts: CountingDeps,
  { withoutStore }: Counting,
  { limits, consumed, charge }: { limits: readonly LimitCharge[]; consumed: Consumed; charge: CreditCharge },
): Promise<Counted | Uncountable> {
  const credits = await parts.loadAndSpend(charge);
  return credits?.status === "unknown"
    ? creditsUnknown(parts, withoutStore, { limits, consumed, cause: undefined })
    : conclude(limits, { ...consumed, credits }, charge);
}

/** Charges namespace limits as requested, without overrides, because these may be unreadable too. */
async function countWithoutStore(
  parts: CountingDeps,
  { plan, withoutStore }: Counting,
  cause: unknown,
): Promise<Counted | Uncountable> {
  const { onCounterFailure } = withoutStore;
  const limits = [...plan.limits, ...plan.shared];
  let consumed: Consumed | undefined;
  if (limits.length > 0) {
    parts.onUncounted("limits", onCounterFailure, cause);
    if (onCounterFailure === "Deny") return { kind: "uncountable", what: "limits", cause };
    if (onCounterFailure === "Local" || onCounterFailure === "LocalShare") {
      consumed = await parts.countLocally(limits, onCounterFailure);
      if (!consumed.passed) return conclude(limits, consumed, undefined);
    }
  }
  if (plan.credits !== undefined) return creditsUnknown(parts, withoutStore, { limits, consumed, cause });
  return conclude(limits, consumed, undefined);
}

function creditsUnknown(
  parts: CountingDeps,
  { onCreditFailure }: WithoutStore,
  { limits, consumed, cause }: { limits: readonly LimitCharge[]; consumed: Consumed | undefined; cause: unknown },
): Counted | Uncountable {
  parts.onUncounted("credits", onCreditFailure, cause);
  if (onCreditFailure === "Deny") return { kind: "uncountable", what: "credits", cause };
  return conclude(limits, consumed && { ...consumed, credits: undefined }, undefined);
}

function conclude(
  limits: readonly LimitCharge[],
  consumed: Consumed | undefined,
  credits: CreditCharge | undefined,
): Counted {
  const code = consumed === undefined ? "VALID" : codeAfterCounting(consumed);
  const spentCredits = consumed?.credits?.status === "spent" && credits !== undefined ? credits.cost : 0;
  return { kind: "counted", code, limits, consumed, spentCredits };
}
