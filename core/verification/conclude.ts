import type { Consumed } from "../charges.ts";
import { retryAtMs, wholeSecondsUntil } from "../ratelimits/limit-headers.ts";
import { DAY_MS } from "../utc-date.ts";
import type { Code } from "./codes.ts";

/** What a verification can end with once the key itself has passed. */
export type CountedCode = Extract<Code, "VALID" | "RATE_LIMITED" | "USAGE_EXCEEDED">;

/**
 * The code after counting: limits are judged first, then credits. Credits that cannot be read refuse; a caller whose policy lets
 * a request through without them passes none.
 */
export function codeAfterCounting({ passed, credits }: Pick<Consumed, "passed" | "credits">): CountedCode {
  if (!passed) return "RATE_LIMITED";
  return credits === undefined || credits.status === "spent" ? "VALID" : "USAGE_EXCEEDED";
}

/**
 * Whole seconds, at least 1, until a refused request may pass: when the last of the refusing limits could. Credits come back by
 * themselves only with a refill, which is done after midnight UTC. undefined for what was not refused.
 */
export function retryAfterS(code: CountedCode, { limits, nowMs }: Consumed): number | undefined {
  if (code === "VALID") return undefined;
  if (code === "USAGE_EXCEEDED") return wholeSecondsUntil(nowMs - (nowMs % DAY_MS) + DAY_MS, nowMs);
  let untilMs = nowMs;
  for (const outcome of limits) if (!outcome.passed) untilMs = Math.max(untilMs, retryAtMs(outcome));
  return wholeSecondsUntil(untilMs, nowMs);
}
