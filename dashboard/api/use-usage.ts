import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Data } from "../../core/api/procedures.ts";
import { type Range, refreshMsOf, type TimeWindow, windowOf } from "../usage/buckets.ts";
import { outcomesQuery, type UsageFilter } from "../usage/queries.ts";
import type { LogOf } from "../usage/requests.ts";
import { type OutcomesOverTime, outcomesOverTime, readOutcomeRows } from "../usage/series.ts";
import { useApi } from "./api-context.ts";
import { ApiError } from "./api-error.ts";
import { useRead } from "./queries.ts";
import { useNow } from "./use-now.ts";

/*
 * Usage queries of the pages. SQL queries count against a quota of the workspace. So a query runs only as often as its buckets can change,
 * never while the page is hidden, and it is not repeated automatically after a rejection.
 */

export type UsageProcedure = "analytics.getVerifications" | "analytics.getRatelimits";
export type UsageRows = Data<UsageProcedure>;

/** Parameters of the current usage query. A new `requestedAtMs` runs the query again. */
interface Asked {
  readonly requestedAtMs: number;
  readonly enabled?: boolean;
}

const TRIES = 2;

/**
 * Whether a usage query is retried: only if the server does not respond or is unavailable. A rejected query would be rejected again, and a
 * quota error may last for an hour.
 */
export const mayRetryUsage = (failures: number, error: unknown): boolean =>
  failures < TRIES && error instanceof ApiError && [0, 503].includes(error.status);

/** Runs a query. Returns the rows of the previous query until the new rows arrive. */
export function useUsageRows<T>(
  procedure: UsageProcedure,
  sql: string,
  read: (rows: UsageRows) => T,
  { requestedAtMs, enabled = true }: Asked,
): UseQueryResult<T, ApiError> {
  const api = useApi();
  return useQuery<T, ApiError>({
    queryKey: [api.workspace, procedure, sql, requestedAtMs],
    queryFn: async ({ signal }) => read((await api.call(procedure, { query: sql }, { signal })).data),
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
    enabled,
    retry: mayRetryUsage,
  });
}

export type UsageState = Data<"admin.getUsageState">;
const STATE_EVERY_MS = 15_000;

/**
 * Reads the time up to which usage has been counted, and the query limits. A caller without permission to read them still sees charts, with
 * the default retention.
 */
export const useUsageState = (): UseQueryResult<UsageState, ApiError> =>
  useRead("admin.getUsageState", {}, { everyMs: STATE_EVERY_MS });

/** Retention to assume until the server reports its own. */
const USUAL_RETENTION_DAYS = 30;
const DAY_MS = 86_400_000;
/** Margin for clocks that are slightly slow. Without it, a query could read rows that the server has just deleted. */
const SPARE_MS = 60_000;

/** Returns the time window of a range, cut to the retention of the workspace. */
export function windowWithin(range: Range, nowMs: number, state: UsageState | undefined): TimeWindow {
  const days = state?.retentionDays.verifications ?? USUAL_RETENTION_DAYS;
  return windowOf(range, nowMs, nowMs - days * DAY_MS + SPARE_MS);
}

/** Returns how far back the log reads, ms: the range, or the retention if it is shorter. */
export function withinRetention(rangeMs: number, of: LogOf, state: UsageState | undefined): number {
  if (state === undefined) return rangeMs;
  const { verifications, ratelimits } = state.retentionDays;
  return Math.min(rangeMs, (of === "verifications" ? verifications : ratelimits.raw) * DAY_MS - SPARE_MS);
}

/** Time until which the counts are complete, Unix ms. If that time is unknown, the charts show no gaps. */
export const countedUntilOf = (state: UsageState | undefined): number =>
  state?.countedUntil ?? Number.POSITIVE_INFINITY;

/** Selects the usage to read. Default: the usage of the whole workspace. */
export interface UsageOf extends UsageFilter {
  /** API to read the usage of, instead of a key space. */
  readonly apiId?: string | undefined;
}

export interface Usage {
  readonly window: TimeWindow;
  /** SQL text of the query. */
  readonly sql: string;
  readonly outcomes: OutcomesOverTime | undefined;
  /** Whether usage queries are off for the workspace. If so, nothing is read. */
  readonly isOff: boolean;
  readonly isLoading: boolean;
  readonly error: ApiError | null;
  /** Time until which usage is counted, Unix ms; `undefined` if unknown. */
  readonly countedUntilMs: number | undefined;
  /** Runs the query again immediately. */
  readonly again: () => void;
}

const NONE: UsageFilter = {};

/** Reads verification outcomes over time for a key, an owner, an API, or the workspace. */
export function useUsage({ apiId, ...given }: UsageOf = NONE, range: Range = "30d"): Usage {
  const state = useUsageState();
  const api = useRead("admin.resolveNames", { kind: "api", ids: [apiId ?? ""] }, { enabled: apiId !== undefined });
  const bucket = windowOf(range, 0).bucket;
  const [nowMs, again] = useNow(refreshMsOf(bucket));
  const window = useMemo(() => windowWithin(range, nowMs, state.data), [range, nowMs, state.data]);
  // An API that does not exist has no usage. The query then uses the id of the API as the key space: no key space has such an id, so it
  // returns no rows.
  const keySpaceId = apiId === undefined ? given.keySpaceId : (api.data?.[0]?.keySpaceId ?? apiId);
  const sql = outcomesQuery(window, { ...given, keySpaceId });
  const isOff = state.data?.enabled === false;
  const isKnown = !state.isPending && !isOff && (apiId === undefined || api.data !== undefined);
  const rows = useUsageRows("analytics.getVerifications", sql, readOutcomeRows, {
    requestedAtMs: nowMs,
    enabled: isKnown,
  });
  const outcomes = useMemo(
    () => rows.data && outcomesOverTime(rows.data, window, countedUntilOf(state.data)),
    [rows.data, window, state.data],
  );
  return {
    window,
    sql,
    outcomes: isOff ? undefined : outcomes,
    isOff,
    isLoading: rows.isPending && !isOff && api.error === null,
    error: isOff ? null : (rows.error ?? api.error),
    countedUntilMs: state.data?.countedUntil,
    again,
  };
}
