import type { Consumed, LimitCharge, LimitOutcome } from "../charges.ts";

/* Limit data that the gate and the API report: the `RateLimit-*` headers and the earliest time at which a retry can succeed. */

/** One limit in the `RateLimit-*` headers. */
export interface ShownLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds to the end of the window, rounded up. */
  readonly resetS: number;
  /** Value of RateLimit-Policy; absent if the limit does not belong to a named rule. */
  readonly policy?: string;
}

export const showLimit = (limit: number, { remaining, resetMs }: LimitOutcome, nowMs: number): ShownLimit => ({
  limit,
  remaining,
  resetS: secondsUntil(resetMs, nowMs),
});

/**
 * Returns the limit to show in the headers. Limits that rejected the request come before the others; within each group, the limit with the
 * fewest remaining units comes first. The order of the list decides ties. Returns `undefined` for an empty list. `ruleName` is the name of
 * the rule that has these limits.
 */
export function showTightest(
  limits: readonly LimitCharge[],
  { limits: outcomes, nowMs }: Consumed,
  ruleName?: string,
): ShownLimit | undefined {
  let tightest: LimitOutcome | undefined;
  let charge: LimitCharge | undefined;
  for (let at = 0; at < outcomes.length; at++) {
    const outcome = outcomes[at] as LimitOutcome;
    if (tightest !== undefined && !isTighter(outcome, tightest)) continue;
    tightest = outcome;
    charge = limits[at];
  }
  if (tightest === undefined) return undefined;
  const { limit = 0, durationMs = 0 } = charge ?? {};
  const shown = showLimit(limit, tightest, nowMs);
  if (ruleName === undefined) return shown;
  return { ...shown, policy: `"${ruleName}";q=${limit};w=${Math.ceil(durationMs / 1000)}` };
}

const isTighter = (a: LimitOutcome, b: LimitOutcome): boolean =>
  a.passed === b.passed ? a.remaining < b.remaining : !a.passed;

/** Appends the headers of a limit to a list of alternating names and values. */
export function pushLimitHeaders(headers: string[], { limit, remaining, resetS, policy }: ShownLimit): void {
  headers.push(
    "RateLimit-Limit",
    String(limit),
    "RateLimit-Remaining",
    String(remaining),
    "RateLimit-Reset",
    String(resetS),
  );
  if (policy !== undefined) headers.push("RateLimit-Policy", policy);
}

/**
 * Returns when to retry a rejected charge, Unix ms. With a limit of 0, or a cost above the limit, the charge never passes. For these cases,
 * returns the end of the window, because the limit may have changed by then.
 */
export const retryAtMs = ({ retryAtMs: atMs, resetMs }: LimitOutcome): number =>
  atMs === undefined || atMs === Number.POSITIVE_INFINITY ? resetMs : atMs;

/** Returns the number of seconds from `nowMs` until `atMs`, rounded up and at least 1. */
export const secondsUntil = (atMs: number, nowMs: number): number => Math.max(1, Math.ceil((atMs - nowMs) / 1000));
