import type { Consumed, LimitOutcome } from "../../core/charges.ts";
import type { CounterCharge } from "../../core/ratelimits/decide-limits.ts";
import { decideLimit, type WindowCounts } from "../../core/ratelimits/window.ts";
import type { ConsumeRequest, Counters } from "./contract.ts";

/** The caller that waits for a response. */
export interface Caller {
  /** Time until which the caller waits, as `performance.now()`. The time may move later while the call is in flight. */
  readonly dueMs: number;
}

export interface ConsumeOptions {
  /**
   * Whether the request has already been rejected. If so, the call evaluates the limits as usual, but consumes no units and ignores
   * credits. A limit that would have admitted the request reports its remaining units without subtracting the cost (api-v2.md section 9.2).
   */
  readonly dryRun?: boolean;
  /** Caller that waits for the outcome. No units are consumed after its time is over. Default: a caller that waits for a few seconds. */
  readonly caller?: Caller;
}

/** Counters that decide every charge in the store and ignore its `accuracy`. Their caller selects the charges. */
export interface StrictCounters extends Counters {
  consume(request: ConsumeRequest, options?: ConsumeOptions): Promise<Consumed>;
}

/**
 * Returns the outcome of each charge in a rejected request. A charge that would pass reports the remaining units without subtracting its
 * cost.
 */
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
