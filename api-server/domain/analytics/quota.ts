import type { LimitCharge } from "../../../core/charges.ts";
import { PublicError } from "../../../core/errors.ts";
import { retryAtMs, secondsUntil } from "../../../core/ratelimits/limit-headers.ts";
import type { CountingDeps } from "../deps.ts";
import { consumeLimits } from "../ratelimits/counting.ts";
import type { AnalyticsLimits } from "./limits.ts";

/*
 * Counts the queries of a workspace and their run time over an hour in the Redis counters, so that all replicas share them. While the
 * counters are unavailable, each replica counts by itself, because the quota must still protect the analytics store.
 */

const HOUR_MS = 3_600_000;

interface QuotaOf {
  readonly workspaceId: string;
  readonly limits: Pick<AnalyticsLimits, "queriesPerHour" | "runMsPerHour">;
}

/**
 * Charge against an hourly quota. The counter's name does not contain the limit, so usage before a change of the limit counts against the
 * new limit.
 */
const charge = (workspaceId: string, value: string, limit: number, cost: number): LimitCharge => ({
  workspaceId,
  scope: { kind: "quota", value },
  identifier: workspaceId,
  limit,
  durationMs: HOUR_MS,
  cost,
  accuracy: "strict",
});

const queries = ({ workspaceId, limits }: QuotaOf): LimitCharge =>
  charge(workspaceId, "analytics-queries", limits.queriesPerHour, 1);

/** Run time that is charged before the query runs, ms. The actual run time is known only afterwards. */
const FIRST_MS = 1;

const runTime = (workspaceId: string, limitMs: number, ms: number): LimitCharge =>
  charge(workspaceId, "analytics-ms", limitMs, ms);

/**
 * Charges one query and the first millisecond of its run time.
 * @throws PublicError 429 `query_quota_exceeded` if either quota is used up; then neither is charged.
 */
export async function chargeQuery(deps: CountingDeps, of: QuotaOf): Promise<void> {
  const { workspaceId, limits } = of;
  const consumed = await consumeLimits(deps, [queries(of), runTime(workspaceId, limits.runMsPerHour, FIRST_MS)]);
  if (consumed.passed) return;
  const [ofQueries] = consumed.limits;
  const detail =
    ofQueries?.passed === false
      ? `The workspace has used up its ${limits.queriesPerHour} analytics queries per hour.`
      : `The workspace has used up the ${limits.runMsPerHour / 1000} seconds of run time per hour for its analytics queries.`;
  const refused = consumed.limits.filter(({ passed }) => !passed).map(retryAtMs);
  throw new PublicError("query_quota_exceeded", detail, {
    retryAfterS: secondsUntil(Math.max(...refused), consumed.nowMs),
  });
}

/**
 * Charges the run time of a query beyond the part that `chargeQuery` has charged. The query has already run, so it is never rejected: a
 * query that exceeds the remaining time leaves a deficit, which delays later queries.
 */
export async function chargeRunTime(
  deps: CountingDeps,
  { workspaceId, tookMs }: { workspaceId: string; tookMs: number },
): Promise<void> {
  const restMs = Math.ceil(tookMs) - FIRST_MS;
  if (restMs <= 0) return;
  await consumeLimits(deps, [runTime(workspaceId, Number.MAX_SAFE_INTEGER, restMs)]);
}
