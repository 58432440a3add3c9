import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../core/charges.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type CountedCode, codeAfterCounting } from "../../core/verification/conclude.ts";
import type { ChargePlan } from "../../core/verification/plan-charges.ts";
import { type Counters, CountersUnavailable } from "../counters/contract.ts";
import type { Projection } from "../projection/contract.ts";
import { applyOverrides } from "./apply-overrides.ts";

/*
 * Charges a plan in one round trip, and decides what to do when the shared counters are unreachable. Limits that were counted stay
 * counted when credits refuse.
 */

export interface CountingParts {
  readonly counters: Pick<Counters, "consume">;
  readonly projection: Pick<Projection, "findOverride">;
  /**
   * Counts limits in this process. Does not need the shared store. `LocalShare`: only this process' share of each limit, where it is one
   * of several.
   */
  countLocally(limits: readonly LimitCharge[], how: "Local" | "LocalShare"): Promise<Consumed>;
  /**
   * Loads the credit counter of a key and charges it. `unknown` when it is still not loaded; undefined when the key is
   * unlimited or deleted by now. May throw `CountersUnavailable`.
   */
  loadAndSpend(charge: CreditCharge): Promise<CreditOutcome | undefined>;
  /** Called each time that limits or credits could not be counted, with what is done instead. */
  onUncounted(what: "limits" | "credits", done: WithoutStore["onCounterFailure"], cause: unknown): void;
}

/**
 * `onCounterFailure` for limits: `Deny` does not decide, `Allow` admits, `Local` and `LocalShare` count in this process.
 * `onCreditFailure` for credits: `Deny` or `Allow`.
 */
export type WithoutStore = Pick<CompiledPolicy, "onCounterFailure" | "onCreditFailure">;

export interface Counting {
  readonly plan: Pick<ChargePlan, "limits" | "shared" | "credits">;
  readonly withoutStore: WithoutStore;
}

export interface Counted {
  readonly kind: "counted";
  readonly code: CountedCode;
  /** The limits that were charged, with overrides: those of the plan by name, then those of namespaces. */
  readonly limits: readonly LimitCharge[];
  /** undefined when the counters are unreachable and the policy admits requests uncounted. */
  readonly consumed: Consumed | undefined;
  readonly spentCredits: number;
}

/** The counters are unreachable, and the policy does not admit the request without them. */
export interface Uncountable {
  readonly kind: "uncountable";
  readonly what: "limits" | "credits";
  /** The store's error; undefined when it answered and the credits are not loaded. */
  readonly cause: unknown;
}

/** Rejects only with our own faults, and with what `loadAndSpend` throws. */
export function count(parts: CountingParts, counting: Counting): Promise<Counted | Uncountable> {
  const { plan } = counting;
  // Most plans have no limits of namespaces, and then nothing is looked up first.
  if (plan.shared.length === 0) return consume(parts, counting, plan.limits);
  return applyOverrides(parts.projection, plan.shared).then((applied) =>
    "unusable" in applied
      ? countWithoutStore(parts, counting, new Error(applied.unusable))
      : consume(parts, counting, [...plan.limits, ...applied.limits.map(({ charge }) => charge)]),
  );
}

function consume(
  parts: CountingParts,
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

/** The limits have been charged; another call only for the credits charges nothing twice. */
async function loadCredits(
  parts: CountingParts,
  { withoutStore }: Counting,
  { limits, consumed, charge }: { limits: readonly LimitCharge[]; consumed: Consumed; charge: CreditCharge },
): Promise<Counted | Uncountable> {
  const credits = await parts.loadAndSpend(charge);
  return credits?.status === "unknown"
    ? creditsUnknown(parts, withoutStore, { limits, consumed, cause: undefined })
    : conclude(limits, { ...consumed, credits }, charge);
}

/** Limits of namespaces are charged without overrides, because these may be unknown too. */
async function countWithoutStore(
  parts: CountingParts,
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
  parts: CountingParts,
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
