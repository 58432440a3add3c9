import { performance } from "node:perf_hooks";
import { QueryRejected } from "../../../analytics/contract.ts";
import type { LatencyQuery, LatencyRow } from "../../../analytics/latencies.ts";
import type { UsageDeps } from "../deps.ts";
import { invalidField } from "../refusals/refusals.ts";
import { chargeQuery, chargeRunTime } from "./quota.ts";
import { refusedByStore } from "./refusals.ts";
import { visibleFrom } from "./settings.ts";
import { settingsForReading } from "./verification-counts.ts";

/** Errors of `readLatencies`, except 400 for too many steps. */
export const LATENCY_ERRORS = [
  "analytics_not_configured",
  "query_quota_exceeded",
  "query_execution_timeout",
  "analytics_connection_failed",
] as const;

/** Maximum number of steps. It is limited because each step can be a row of the result. */
const LATENCY_STEPS_MAX = 1_000;

export interface RequestedLatencies extends Omit<LatencyQuery, "timeoutMs" | "within"> {
  /** Returns the key spaces that the caller is allowed to read; `undefined` for all. */
  readonly within: () => Promise<readonly string[] | undefined>;
}

/**
 * Returns the latencies of verifications, one row for each step that has verifications. The call counts against the workspace's quota like
 * a SQL query, because it reads as much data.
 * @throws PublicError 400 if there are too many steps, or one of `LATENCY_ERRORS`.
 */
export async function readLatencies(deps: UsageDeps, asked: RequestedLatencies): Promise<readonly LatencyRow[]> {
  const { workspaceId, toMs, stepMs } = asked;
  const { retention, limits } = await settingsForReading(deps, workspaceId);
  const fromMs = Math.max(asked.fromMs, visibleFrom(retention, "verifications", deps.nowMs()).raw);
  if ((toMs - asked.fromMs) / stepMs > LATENCY_STEPS_MAX) {
    throw invalidField("body.to", `must be at most ${LATENCY_STEPS_MAX} steps after from`);
  }
  if (fromMs >= toMs) return [];
  const within = await asked.within();
  await chargeQuery(deps, { workspaceId, limits });
  const startedMs = performance.now();
  try {
    return await deps.analytics.countLatencies({ ...asked, within, fromMs, timeoutMs: limits.timeoutMs });
  } catch (error) {
    throw error instanceof QueryRejected ? refusedByStore(error) : error;
  } finally {
    await chargeRunTime(deps, { workspaceId, tookMs: performance.now() - startedMs });
  }
}
