import type { Consumed } from "../charges.ts";
import { retryAtMs, wholeSecondsUntil } from "../ratelimits/limit-headers.ts";
import { DAY_MS } from "../utc-date.ts";
import type { Code } from "./codes.ts";

/** The outcomes of a verification whose key itself has passed. */
export type CountedCode = Extract<Code, "VALID" | "RATE_LIMITED" | "USAGE_EXCEEDED">;

/**
 * The code after counting: limits come first, then credits. Unreadable credits refuse; a caller whose policy
 * admits requests without them passes no credits.
 */
export function codeAfterCounting({ passed, credits }: Pick<Consumed, "passed" | "credits">): CountedCode {
  if (!passed) return "RATE_LIMITED";
  return credits === undefined || credits.status === "spent" ? "VALID" : "USAGE_EXCEEDED";
}

/**
 * Whole seconds, at least 1, until a refused request may pass: until the last of the refusing limits can. Credits increase by
 * themselves only with a refill, after midnight UTC. Returns undefined for what was not refused.
 */
export function retryAfterS(code: CountedCode, { limits, nowMs }: Consumed): number | undefined {
  if (code === "VALID") return undefined;
  if (code === "USAGE_EXCEEDED") return wholeSecondsUntil(nowMs - (nowMs % DAY_MS) + DAY_MS, nowMs);
  let untilMs = nowMs;
  for (const outcome of limits) if (!outcome.passed) untilMs = Math.max(untilMs, retryAtMs(outcome));
  return wholeSecondsUntil(untilMs, nowMs);
}
