import { useMemo } from "react";
import type { Data, Input } from "../../../core/api/procedures.ts";
import { useRead } from "../../api/queries.ts";
import { countedUntilOf, useUsageRows, useUsageState, windowWithin } from "../../api/use-usage.ts";
import { bucketStarts, type Range, type TimeWindow } from "../../usage/buckets.ts";
import {
  outcomesQuery,
  refusingLimitsQuery,
  topKeysQuery,
  topOwnersQuery,
  type UsageFilter,
} from "../../usage/queries.ts";
import { showsLatency } from "../../usage/search.ts";
import { outcomesOverTime, readLimitRows, readOutcomeRows, readTopRows, type TopRow } from "../../usage/series.ts";

const readKeys = (rows: readonly Record<string, unknown>[]): TopRow[] => readTopRows(rows, "key_id");
const readOwners = (rows: readonly Record<string, unknown>[]): TopRow[] => readTopRows(rows, "external_id");

/**
 * Runs all queries of the Usage page for the same point in time, so all charts refresh together. Only two queries run at a time, because
 * the server runs two per workspace; more would wait at the server and delay other clients.
 */
export function usePictures(
  range: Range,
  filter: UsageFilter,
  { nowMs, isReady }: { nowMs: number; isReady: boolean },
) {
  const state = useUsageState();
  const window = useMemo(() => windowWithin(range, nowMs, state.data), [range, nowMs, state.data]);
  const enabled = isReady && !state.isPending && state.data?.enabled !== false;
  const asked = (before?: { readonly isFetching: boolean }) => ({
    requestedAtMs: nowMs,
    enabled: enabled && before?.isFetching !== true,
  });
  const sql = {
    outcomes: outcomesQuery(window, filter),
    keys: topKeysQuery(window, filter),
    owners: topOwnersQuery(window, filter),
    limits: refusingLimitsQuery(window),
  };
  const rows = useUsageRows("analytics.getVerifications", sql.outcomes, readOutcomeRows, asked());
  const keys = useUsageRows("analytics.getVerifications", sql.keys, readKeys, asked(rows));
  const limits = useUsageRows("analytics.getRatelimits", sql.limits, readLimitRows, asked());
  const owners = useUsageRows("analytics.getVerifications", sql.owners, readOwners, asked(limits));
  const hasLatency = showsLatency(window);
  const latency = useRead("admin.getLatencies", latencyBody(window, filter), { enabled: enabled && hasLatency });
  const outcomes = useMemo(
    () => rows.data && outcomesOverTime(rows.data, window, countedUntilOf(state.data)),
    [rows.data, window, state.data],
  );
  return { state, window, sql, rows, outcomes, keys, owners, limits, hasLatency, latency };
}

/**
 * Returns the body of the latency query. The query covers the time up to the end of the window, so that a minute is not requested twice.
 */
const latencyBody = (
  { fromMs, toMs, bucket }: TimeWindow,
  { keySpaceId, keyId, externalId }: UsageFilter,
): Input<"admin.getLatencies"> => ({
  from: fromMs,
  to: toMs,
  step: bucket,
  ...(keySpaceId === undefined ? {} : { keySpaceId }),
  ...(keyId === undefined ? {} : { keyId }),
  ...(externalId === undefined ? {} : { externalId }),
});

const QUANTILES = ["p50", "p95", "p99"] as const;

/** Returns one value per bucket of the window; a bucket without verifications is a gap. */
export function latencySeries(rows: Data<"admin.getLatencies">, window: TimeWindow) {
  const byTime = new Map(rows.map((row) => [row.time, row]));
  const times = bucketStarts(window);
  return {
    times,
    series: QUANTILES.map((name) => ({ name, values: times.map((ms) => byTime.get(ms)?.[name] ?? null) })),
  };
}
