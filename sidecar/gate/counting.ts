import type { CreditCharge, CreditOutcome } from "../../core/charges.ts";
import { type Counters, CountersUnavailable } from "../../edge/counters/contract.ts";
import { MemoryCounters, MemoryStore } from "../../edge/counters/memory.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import type { CountingParts } from "../../edge/verification/count.ts";

export interface CountingOptions {
  readonly projection: Projection;
  readonly counters: Counters;
  readonly nowMs: () => number;
  /** How long a request waits for the credits of its key to be loaded. */
  readonly creditLoadMs: number;
  readonly onFailure: (what: "limits" | "credits") => void;
}

/** How a gate counts: what the shared store cannot count is counted in this process, from zero. */
export function createCounting(options: CountingOptions): CountingParts {
  const { projection, counters, nowMs, creditLoadMs, onFailure } = options;
  let localCounters: MemoryCounters | undefined;
  return {
    projection,
    counters,
    countLocally(limits) {
      localCounters ??= new MemoryCounters(new MemoryStore(nowMs));
      return localCounters.consume({ limits: limits.map((limit) => ({ ...limit, accuracy: "strict" })) });
    },
    loadAndSpend: (charge) => pollCredits(counters, charge, creditLoadMs),
    onUncounted: onFailure,
  };
}

const CREDIT_POLL_MS = 20;
const UNKNOWN: CreditOutcome = { status: "unknown" };

/** The previous call requested the load, which an api-server does; this one spends as soon as it is done. */
async function pollCredits(counters: Counters, credits: CreditCharge, waitMs: number): Promise<CreditOutcome> {
  const giveUpAt = performance.now() + waitMs;
  while (performance.now() < giveUpAt) {
    await new Promise((resolve) => setTimeout(resolve, CREDIT_POLL_MS));
    try {
      const { credits: outcome } = await counters.consume({ limits: [], credits });
      if (outcome !== undefined && outcome.status !== "unknown") return outcome;
    } catch (error) {
      // It may have been spent or not; another try could spend twice.
      if (error instanceof CountersUnavailable) return UNKNOWN;
      throw error;
    }
  }
  return UNKNOWN;
}
