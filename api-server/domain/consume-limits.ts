import type { Consumed, LimitCharge } from "../../core/charges.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import type { Deps } from "../deps.ts";
import { noteRarely } from "./note-rarely.ts";

/**
 * Consumes limits, all or none. While the shared store is lost each process decides by what it knows itself (api-v2.md
 * section 9.1), so that several may together admit more than the limit; that is logged.
 */
export function consumeLimits(
  { counters, log }: Pick<Deps, "counters" | "log">,
  limits: readonly LimitCharge[],
): Promise<Consumed> {
  return counters.consume({ limits }).catch((error: unknown) => {
    if (!(error instanceof CountersUnavailable)) throw error;
    const message = "limits decided in this process: the shared counters are away";
    noteRarely({ counters, log }, { reason: error.message, message });
    return counters.consume({ limits: limits.map((charge) => ({ ...charge, accuracy: "local" })) });
  });
}
