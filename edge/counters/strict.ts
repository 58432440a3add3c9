import type { Consumed, LimitOutcome } from "../../core/charges.ts";
import type { CounterCharge } from "../../core/ratelimits/decide-limits.ts";
import { decideLimit, type WindowCounts } from "../../core/ratelimits/window.ts";
import type { ConsumeRequest, Counters } from "./contract.ts";

/** Who waits for an answer, and until when. */
export interface Caller {
  /** Of `performance.now()`. It may be put off while the call is under way. */
  readonly dueMs: number;
}

export interface ConsumeOptions {
  /**
   * For a request that is refused already: it decides the limits with their costs, consumes nothing, leaves credits alone, and
   * reports of each limit that would pass what is left without the cost (api-v2.md section 9.2).
   */
  readonly dryRun?: boolean;
  /** Once this caller has given up, nothing is consumed any more. Some seconds, when left out. */
  readonly caller?: Caller;
}

/** Counters that decide every charge in the store, whatever `accuracy` says. What stands before them sorts the charges. */
export interface StrictCounters extends Counters {
  consume(request: ConsumeRequest, options?: ConsumeOptions): Promise<Consumed>;
}

/** What each charge reports in a request that is refused: those that pass on their own, what is left without their cost. */
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
