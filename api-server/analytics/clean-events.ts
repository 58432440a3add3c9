import type { UsageEvent } from "../../edge/events/contract.ts";

/** The only member with fractions; all other numbers are integers. */
const FRACTION = "latencyMs";

/**
 * The line of an event with what a store refuses replaced: U+0000, lone surrogates, a fraction in a count. Pods can write such events,
 * and one of them would stop all others of its portion.
 */
export function cleanLine(event: UsageEvent): string {
  return JSON.stringify(event, (member, value: unknown) => {
    if (typeof value === "string") return value.toWellFormed().replaceAll("\u0000", "\ufffd");
    if (typeof value === "number" && member !== FRACTION) return Math.min(Number.MAX_SAFE_INTEGER, Math.trunc(value));
    return value;
  });
}
