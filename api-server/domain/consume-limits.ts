import { performance } from "node:perf_hooks";
import { type Consumed, type Counters, CountersUnavailable, type LimitCharge } from "../../edge/counters/contract.ts";
import type { Deps } from "../deps.ts";

/**
 * Consumes limits, all or none. While the shared store is lost each process decides by what it knows itself (api/v2
 * section 9.1), so that several may together admit more than the limit; that is logged.
 */
export async function consumeLimits(
  { counters, log }: Pick<Deps, "counters" | "log">,
  limits: readonly LimitCharge[],
): Promise<Consumed> {
  try {
    return await counters.consume({ limits });
  } catch (error) {
    if (!(error instanceof CountersUnavailable)) throw error;
    noteLocal(counters, log, error.message);
    return counters.consume({ limits: limits.map((charge) => ({ ...charge, accuracy: "local" })) });
  }
}

/** Every request of an outage comes this way: one line each would bury all others. */
const LOG_EVERY_MS = 5000;

interface LocalDecisions {
  /** Since the last line. */
  count: number;
  /** Of `performance.now()`. */
  loggedAtMs: number;
}

const localDecisions = new WeakMap<Counters, LocalDecisions>();

function noteLocal(counters: Counters, log: Deps["log"], reason: string): void {
  const noted = localDecisions.get(counters) ?? { count: 0, loggedAtMs: Number.NEGATIVE_INFINITY };
  localDecisions.set(counters, noted);
  noted.count += 1;
  const nowMs = performance.now();
  if (nowMs - noted.loggedAtMs < LOG_EVERY_MS) return;
  log.warn({ reason, calls: noted.count }, "limits decided in this process: the shared counters are away");
  noted.count = 0;
  noted.loggedAtMs = nowMs;
}
