import type { LimitCharge } from "../../../core/charges.ts";
import { PublicError } from "../../../core/errors.ts";
import { retryAtMs, wholeSecondsUntil } from "../../../core/ratelimits/limit-headers.ts";
import { consumeLimits } from "../ratelimits/counting.ts";
import type { AnalyticsLimits } from "./limits.ts";

/*
 * The queries of a workspace and the time that they run, counted over an hour in the shared counters, so that all replicas see the
 * same numbers. While the counters are away each replica counts alone: the quota protects the analytics store.
 */

const HOUR_MS = 3_600_000;

type QuotaDeps = Parameters<typeof consumeLimits>[0];

interface QuotaOf {
  readonly workspaceId: string;
  readonly limits: Pick<AnalyticsLimits, "queriesPerHour" | "runMsPerHour">;
}

/** Both have the same counter for every limit: a changed limit applies to what was used before. */
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

/** How long a query runs is known afterwards. Before it, it is charged this. */
const FIRST_MS = 1;

const runTime = (workspaceId: string, limitMs: number, ms: number): LimitCharge =>
  charge(workspaceId, "analytics-ms", limitMs, ms);

/**
 * Charges one query and its first millisecond.
 * @throws PublicError 429 `query_quota_exceeded` when either is used up; then neither is charged.
 */
export async function chargeQuery(deps: QuotaDeps, of: QuotaOf): Promise<void> {
  const { workspaceId, limits } = of;
  const consumed = await consumeLimits(deps, [queries(of), runTime(workspaceId, limits.runMsPerHour, FIRST_MS)]);
  if (consumed.passed) return;
  const [ofQueries] = consumed.limits;
  const detail =
    ofQueries?.passed === false
      ? `The workspace has used up its ${limits.queriesPerHour} analytics queries per hour.`
      : `The workspace has used up the ${limits.runMsPerHour / 1000} seconds per hour that its analytics queries may run.`;
  const refused = consumed.limits.filter(({ passed }) => !passed).map(retryAtMs);
  throw new PublicError("query_quota_exceeded", detail, {
    headers: { "Retry-After": String(wholeSecondsUntil(Math.max(...refused), consumed.nowMs)) },
  });
}

/**
 * Charges the time that a query ran beyond what `chargeQuery` has charged. It has run, so no limit can refuse it: a query that runs
 * for longer than is left uses up all of it and more, and later queries wait for that too.
 */
export async function chargeRunTime(
  deps: QuotaDeps,
  { workspaceId, tookMs }: { workspaceId: string; tookMs: number },
): Promise<void> {
  const restMs = Math.ceil(tookMs) - FIRST_MS;
  if (restMs <= 0) return;
  await consumeLimits(deps, [runTime(workspaceId, Number.MAX_SAFE_INTEGER, restMs)]);
}
