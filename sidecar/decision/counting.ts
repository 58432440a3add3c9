import type { CreditCharge, CreditOutcome } from "../../core/charges.ts";
import { shareOfLimit } from "../../core/ratelimits/decide-limits.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import { MemoryCounters, MemoryStore } from "../../edge/counters/memory.ts";
import type { EdgeCounters } from "../../edge/open.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import type { CountingDeps } from "../../edge/verification/count.ts";

export interface CountingOptions {
  readonly projection: Projection;
  readonly counters: Pick<EdgeCounters, "consume" | "addLater">;
  /** Returns the number of pods that enforce the policy, as of the last report. */
  readonly podsAlive: () => number;
  readonly nowMs: () => number;
  /** Maximum time for which a request waits until the credits of its key are loaded. */
  readonly creditLoadMs: number;
  readonly onFailure: CountingDeps["onUncounted"];
}

/** Creates the counting dependencies of a gate. If the shared store cannot count a request, this process counts it, starting from zero. */
export function createCounting(options: CountingOptions): CountingDeps {
  const { projection, counters, podsAlive, nowMs, creditLoadMs, onFailure } = options;
  let localCounters: MemoryCounters | undefined;
  return {
    projection,
    counters,
    async countLocally(limits, how) {
      localCounters ??= new MemoryCounters(new MemoryStore(nowMs));
      const pods = how === "LocalShare" ? podsAlive() : 1;
      const own = limits.map((charge) => ({ ...charge, limit: shareOfLimit(charge.limit, pods) }));
      const consumed = localCounters.consumeNow({ limits: own });
      // Reports the charges with their full limits, not with this pod's share, because the counts are compared with the totals of all pods.
      if (consumed.passed) counters.addLater(limits, consumed.nowMs);
      return consumed;
    },
    loadAndSpend: (charge) => pollCredits(counters, charge, creditLoadMs),
    onUncounted: onFailure,
  };
}

const CREDIT_POLL_MS = 20;
const UNKNOWN: CreditOutcome = { status: "unknown" };

/**
 * Polls until an api-server has loaded the credits into Redis, then spends them. The previous attempt to spend them failed and requested
 * the load.
 */
async function pollCredits(
  counters: Pick<EdgeCounters, "consume">,
  credits: CreditCharge,
  waitMs: number,
): Promise<CreditOutcome> {
  const giveUpAt = performance.now() + waitMs;
  while (performance.now() < giveUpAt) {
    await new Promise((resolve) => setTimeout(resolve, CREDIT_POLL_MS));
    try {
      const { credits: outcome } = await counters.consume({ limits: [], credits });
      if (outcome !== undefined && outcome.status !== "unknown") return outcome;
    } catch (error) {
      // Does not retry after an error: the credits may have been spent, and a retry could spend them twice.
      if (error instanceof CountersUnavailable) return UNKNOWN;
      throw error;
    }
  }
  return UNKNOWN;
}
