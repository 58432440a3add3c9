import type { Consumed } from "../charges.ts";
import { retryAtMs, secondsUntil } from "../ratelimits/limit-headers.ts";
import { DAY_MS } from "../utc-date.ts";
import type { Code } from "./codes.ts";

/** Outcomes of a verification after the key has passed all checks. */
export type CountedCode = Extract<Code, "VALID" | "RATE_LIMITED" | "USAGE_EXCEEDED">;

/**
 * Returns the code after counting. Limits take precedence over credits. If the credits cannot be read, the code rejects the request. A
 * caller whose policy admits such requests must therefore omit the credits.
 */
export function codeAfterCounting({ passed, credits }: Pick<Consumed, "passed" | "credits">): CountedCode {
  if (!passed) return "RATE_LIMITED";
  return credits === undefined || credits.status === "spent" ? "VALID" : "USAGE_EXCEEDED";
}

/**
 * Returns the seconds, rounded up and at least 1, until every exceeded limit admits a rejected request. For credits, returns the seconds
 * until midnight UTC, because refills happen then. Returns `undefined` for a request that was not rejected.
 */
export function retryAfterS(code: CountedCode, { limits, nowMs }: Consumed): number | undefined {
  if (code === "VALID") return undefined;
  if (code === "USAGE_EXCEEDED") return secondsUntil(nowMs - (nowMs % DAY_MS) + DAY_MS, nowMs);
  let untilMs = nowMs;
  for (const outcome of limits) if (!outcome.passed) untilMs = Math.max(untilMs, retryAtMs(outcome));
  return secondsUntil(untilMs, nowMs);
}
