import type { LimitCharge } from "../../../core/charges.ts";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import type { CountingDeps } from "../deps.ts";

/** State of a limit's counter. */
export interface LimitCount {
  /** Number of units used in the sliding window, capped at the limit. */
  readonly used: number;
  readonly remaining: number;
  /** End of the current window, Unix ms. */
  readonly resetMs: number;
}

/**
 * Reads counters without charging them, in the order of the limits; on a single Redis, all in one round trip. Returns `undefined` while the
 * Redis counters are unreachable.
 */
export async function readCounts(
  { counters }: Pick<CountingDeps, "counters">,
  limits: readonly Omit<LimitCharge, "cost" | "accuracy">[],
): Promise<readonly LimitCount[] | undefined> {
  if (limits.length === 0) return [];
  try {
    // Reads the Redis counters even for limits with local accuracy: processes flush their local counts to Redis with a short delay.
    const charges = limits.map((limit): LimitCharge => ({ ...limit, cost: 0, accuracy: "strict" }));
    const consumed = await counters.consume({ limits: charges });
    return consumed.limits.map(({ remaining, resetMs }, i) => ({
      used: (limits[i]?.limit ?? 0) - remaining,
      remaining,
      resetMs,
    }));
  } catch (error) {
    if (error instanceof CountersUnavailable) return undefined;
    throw error;
  }
}
