import type { Consumed, CreditCharge, LimitCharge, LimitOutcome } from "../../core/charges.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import type { Code } from "../../core/verification/codes.ts";
import { settle } from "../../core/verification/settle.ts";
import { type ConsumeRequest, type Counters, CountersUnavailable } from "../../edge/counters/contract.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import type { ShownLimit } from "../http/answers.ts";
import { type Charges, overridden } from "./charges.ts";

/*
 * Counting what a request is charged, in one round trip, and what is done when the shared counters cannot say: the
 * policy's word (`onCounterFailure`, `onCreditFailure`), counted in the metrics.
 */

export interface CountingParts {
  readonly projection: Projection;
  readonly counters: Counters;
  /** Counts in this process, for `onCounterFailure: Local`. */
  readonly localCounters: () => Counters;
  readonly creditLoadMs: number;
  readonly onFailure: (what: "limits" | "credits") => void;
}

export type Settled =
  | {
      readonly code: Extract<Code, "VALID" | "RATE_LIMITED" | "USAGE_EXCEEDED">;
      readonly spentCredits: number;
      readonly shown: ShownLimit | undefined;
      readonly retryAfterS: number | undefined;
    }
  | { readonly unavailable: string };

const CREDIT_POLL_MS = 20;

/** Throws nothing for a store that is away; anything else that fails is a fault of ours. */
export function count(
  parts: CountingParts,
  policy: CompiledPolicy,
  workspaceId: string,
  charges: Charges,
): Promise<Settled> {
  // Most charges have no limits of namespaces: then nothing has to be looked up first.
  if (charges.shared.length === 0) return consume(parts, policy, charges, charges.named);
  return withOverrides(parts.projection, workspaceId, charges).then((limits) =>
    limits === undefined ? countWithoutStore(parts, policy, charges) : consume(parts, policy, charges, limits),
  );
}

function consume(
  parts: CountingParts,
  policy: CompiledPolicy,
  charges: Charges,
  limits: readonly LimitCharge[],
): Promise<Settled> {
  const { credits } = charges;
  return parts.counters.consume({ limits, credits }).then(
    (consumed) =>
      consumed.credits?.status === "unknown"
        ? settleLater(parts, policy, limits, { consumed, credits })
        : conclude(limits, consumed, credits),
    (error: unknown) => {
      if (!(error instanceof CountersUnavailable)) throw error;
      return countWithoutStore(parts, policy, charges);
    },
  );
}

/** The limits have been counted; the credits were not loaded, and are by now being so. */
async function settleLater(
  parts: CountingParts,
  policy: CompiledPolicy,
  limits: readonly LimitCharge[],
  { consumed, credits: charge }: { consumed: Consumed; credits: CreditCharge | undefined },
): Promise<Settled> {
  const credits = charge && (await awaitCredits(parts, charge));
  return credits === undefined
    ? creditsUnknown(parts, policy, limits, consumed)
    : conclude(limits, { ...consumed, credits }, charge);
}

/** The charges with the overrides in force; undefined when these cannot be known now. */
async function withOverrides(
  projection: Projection,
  workspaceId: string,
  { named, shared }: Charges,
): Promise<LimitCharge[] | undefined> {
  const found = await Promise.all(
    shared.map(({ namespaceId, charge }) => projection.findOverride(workspaceId, namespaceId, charge.identifier)),
  );
  const limits = [...named];
  for (const [at, lookup] of found.entries()) {
    const one = shared[at];
    if (one === undefined || lookup.status === "unusable") return undefined;
    limits.push(lookup.status === "found" ? overridden(one.charge, lookup.value) : one.charge);
  }
  return limits;
}

/** The limits are those that the policy itself names: overrides may be unknown too. */
async function countWithoutStore(parts: CountingParts, policy: CompiledPolicy, charges: Charges): Promise<Settled> {
  const limits = [...charges.named, ...charges.shared.map(({ charge }) => charge)];
  let local: Consumed | undefined;
  if (limits.length > 0) {
    parts.onFailure("limits");
    if (policy.onCounterFailure === "Deny") return { unavailable: "Rate limits cannot be counted now." };
    if (policy.onCounterFailure === "Local") {
      const request: ConsumeRequest = { limits: limits.map((limit) => ({ ...limit, accuracy: "strict" })) };
      local = await parts.localCounters().consume(request);
      if (!local.passed) return conclude(limits, local, undefined);
    }
  }
  if (charges.credits !== undefined) return creditsUnknown(parts, policy, limits, local);
  return local === undefined ? UNCOUNTED : conclude(limits, local, undefined);
}

function creditsUnknown(
  parts: CountingParts,
  policy: CompiledPolicy,
  limits: readonly LimitCharge[],
  consumed: Consumed | undefined,
): Settled {
  parts.onFailure("credits");
  if (policy.onCreditFailure === "Deny") return { unavailable: "The credits of the API key cannot be counted now." };
  return consumed === undefined ? UNCOUNTED : conclude(limits, { ...consumed, credits: undefined }, undefined);
}

/**
 * The first call asked for a load and spent nothing, so asking again for the credits alone is not counting twice.
 * undefined when they are still unknown after the wait. Throws `CountersUnavailable` never: a lost call ends the wait.
 */
async function awaitCredits(parts: CountingParts, credits: CreditCharge): Promise<Consumed["credits"]> {
  const giveUpAt = performance.now() + parts.creditLoadMs;
  while (performance.now() < giveUpAt) {
    await new Promise((resolve) => setTimeout(resolve, CREDIT_POLL_MS));
    try {
      const { credits: outcome } = await parts.counters.consume({ limits: [], credits });
      if (outcome !== undefined && outcome.status !== "unknown") return outcome;
    } catch (error) {
      // It may have been spent or not; a further try could spend a second time.
      if (error instanceof CountersUnavailable) return undefined;
      throw error;
    }
  }
  return undefined;
}

const UNCOUNTED: Settled = { code: "VALID", spentCredits: 0, shown: undefined, retryAfterS: undefined };

function conclude(limits: readonly LimitCharge[], consumed: Consumed, credits: CreditCharge | undefined): Settled {
  const code = settle(undefined, consumed) as Extract<Code, "VALID" | "RATE_LIMITED" | "USAGE_EXCEEDED">;
  return {
    code,
    spentCredits: code === "VALID" && credits !== undefined ? credits.cost : 0,
    shown: showTightest(limits, consumed),
    retryAfterS: code === "VALID" ? undefined : retryAfterS(code, consumed),
  };
}

/** A limit that refused before one that did not, then the one with the least left. */
function showTightest(limits: readonly LimitCharge[], { limits: outcomes, nowMs }: Consumed): ShownLimit | undefined {
  let tightest: LimitOutcome | undefined;
  let limit = 0;
  for (let at = 0; at < outcomes.length; at++) {
    const outcome = outcomes[at] as LimitOutcome;
    if (tightest !== undefined && !isTighter(outcome, tightest)) continue;
    tightest = outcome;
    limit = limits[at]?.limit ?? 0;
  }
  if (tightest === undefined) return undefined;
  return { limit, remaining: tightest.remaining, resetS: wholeSeconds(tightest.resetMs - nowMs) };
}

const isTighter = (a: LimitOutcome, b: LimitOutcome): boolean =>
  a.passed === b.passed ? a.remaining < b.remaining : !a.passed;

const DAY_MS = 86_400_000;

/** When the last of the refusing limits could pass; credits come back by themselves only with a refill, after midnight UTC. */
function retryAfterS(code: Code, { limits, nowMs }: Consumed): number {
  if (code === "USAGE_EXCEEDED") return wholeSeconds(DAY_MS - (nowMs % DAY_MS));
  let untilMs = nowMs;
  for (const { passed, retryAtMs, resetMs } of limits) {
    if (passed) continue;
    // A limit of 0, or a cost above the limit, never passes as things are; by the next window they may have changed.
    const atMs = retryAtMs === undefined || retryAtMs === Number.POSITIVE_INFINITY ? resetMs : retryAtMs;
    untilMs = Math.max(untilMs, atMs);
  }
  return wholeSeconds(untilMs - nowMs);
}

const wholeSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));
