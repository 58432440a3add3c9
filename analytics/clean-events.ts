import type { UsageEvent } from "../edge/events/contract.ts";

/** The only member that may have a fraction; all other numbers are integers. */
const FRACTION = "latencyMs";

/**
 * Returns the JSON line of an event after replacing values that a store rejects: U+0000, lone surrogates and fractional counts. Pods can
 * write such events, and a single invalid event would otherwise block its whole batch.
 */
export function cleanLine(event: UsageEvent): string {
  return JSON.stringify(event, (member, value: unknown) => {
    if (typeof value === "string") return value.toWellFormed().replaceAll("\u0000", "\ufffd");
    if (typeof value === "number" && member !== FRACTION) return Math.min(Number.MAX_SAFE_INTEGER, Math.trunc(value));
    return value;
  });
}
