import type { Consumed, LimitOutcome } from "../../core/charges.ts";
import type { CounterCharge } from "../../core/ratelimits/decide-limits.ts";
import { decideLimit, type WindowCounts } from "../../core/ratelimits/window.ts";
import type { ConsumeRequest, Counters } from "./contract.ts";

/** The caller that waits for an answer. */
export interface Caller {
  /** Until when it waits, by `performance.now()`. May be moved later while the call is in flight. */
  readonly dueMs: number;
}

export interface ConsumeOptions {
  /**
   * For a request that is already refused: decides the limits with their costs, consumes nothing, ignores credits, and reports for each
   * limit that would pass what remains without the cost (api-v2.md section 9.2).
   */
  readonly dryRun?: boolean;
  /** When this caller has given up, nothing is consumed any more. A few seconds when left out. */
  readonly caller?: Caller;
}

/** Counters that decide every charge in the store, whatever its `accuracy` is. The layer above them sorts the charges. */
export interface StrictCounters extends Counters {
  consume(request: ConsumeRequest, options?: ConsumeOptions): Promise<Consumed>;
}

/** What each charge reports in a refused request: a charge that would pass reports what remains without its cost. */
export function reportRefused(
  charges: readonly CounterCharge[],
  outcomes: readonly LimitOutcome[],
  { read, nowMs }: { read: (counterKey: string) => WindowCounts | undefined; nowMs: number },
): LimitOutcome[] {
  return outcomes.map((outcome, i) => {
    const charge = charges[i];
    if (!outcome.passed || charge === undefined) return outcome;
    const { counterKey, limit, durationMs } = charge;
    const { remaining } = decideLimit({ limit, durationMs, counts: read(counterKey), cost: 0, nowMs });
    return { ...outcome, remaining };
  });
}
