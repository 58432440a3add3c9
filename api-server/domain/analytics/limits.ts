import type { QueryLimits } from "../../../analytics/contract.ts";

/** Limits of a workspace for the analytics procedures (api-v2.md section 18.3). */
export interface AnalyticsLimits extends QueryLimits {
  /** Maximum number of queries per hour; 0 rejects every query. */
  readonly queriesPerHour: number;
  /** Maximum total run time of the queries per hour, ms. */
  readonly runMsPerHour: number;
}

export interface LimitRow {
  readonly byDefault: number;
  readonly min: number;
  readonly max: number;
}

/** Limits that an administrator can set for a workspace, with their defaults. */
export const ANALYTICS_LIMITS: Readonly<Record<keyof AnalyticsLimits, LimitRow>> = {
  rowsMax: { byDefault: 10_000, min: 1, max: 100_000 },
  timeoutMs: { byDefault: 10_000, min: 1_000, max: 30_000 },
  memoryBytesMax: { byDefault: 1_000_000_000, min: 16_000_000, max: 64_000_000_000 },
  answerBytesMax: { byDefault: 4 * 1024 * 1024, min: 1024 * 1024, max: 64 * 1024 * 1024 },
  queriesPerHour: { byDefault: 1_000, min: 0, max: 1_000_000_000 },
  runMsPerHour: { byDefault: 1_800_000, min: 0, max: 1_000_000_000_000 },
};

/**
 * Fills in defaults, and clamps stored values to the bounds of `ANALYTICS_LIMITS`, because a release with other bounds may have stored
 * them.
 */
export function completeLimits(stored: Readonly<Record<keyof AnalyticsLimits, number | null>>): AnalyticsLimits {
  const limit = (name: keyof AnalyticsLimits): number => {
    const { byDefault, min, max } = ANALYTICS_LIMITS[name];
    return Math.min(max, Math.max(min, stored[name] ?? byDefault));
  };
  return {
    rowsMax: limit("rowsMax"),
    timeoutMs: limit("timeoutMs"),
    memoryBytesMax: limit("memoryBytesMax"),
    answerBytesMax: limit("answerBytesMax"),
    queriesPerHour: limit("queriesPerHour"),
    runMsPerHour: limit("runMsPerHour"),
  };
}
