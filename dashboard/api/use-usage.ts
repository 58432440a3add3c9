import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Data } from "../../core/api/procedures.ts";
import { type Range, refreshMsOf, type TimeWindow, windowOf } from "../usage/buckets.ts";
import { outcomesQuery, type UsageFilter } from "../usage/queries.ts";
import { type OutcomesOverTime, outcomesOverTime, readOutcomeRows } from "../usage/series.ts";
import { useApi } from "./api-context.ts";
import { ApiError } from "./api-error.ts";
import { useRead } from "./queries.ts";
import { useNow } from "./use-now.ts";

/*
 * What pages ask about usage. A question in SQL counts against a quota of the workspace, so each is asked as rarely as its buckets allow, never while
 * the page is hidden, and not again by itself when it was refused.
 */

export type UsageProcedure = "analytics.getVerifications" | "analytics.getRatelimits";
export type UsageRows = Data<UsageProcedure>;

/** What an open question of usage is about: `askedAtMs` makes it a new one. */
interface Asked {
  readonly requestedAtMs: number;
  readonly enabled?: boolean;
}

const TRIES = 2;

/** Runs a query; the rows of the last one stay until those of the next are there. */
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
    // A refusal of the query stays one; and one for the quota says when, which may be in an hour.
    retry: (failures, error) => failures < TRIES && error instanceof ApiError && [0, 503].includes(error.status),
  });
}

export type UsageState = Data<"admin.getUsageState">;
const STATE_EVERY_MS = 15_000;

/** How far usage is counted, and what may be asked. A caller that may not read it still sees pictures, with the usual retention. */
export const useUsageState = (): UseQueryResult<UsageState, ApiError> =>
  useRead("admin.getUsageState", {}, { everyMs: STATE_EVERY_MS });

/** By a server that does not say otherwise. */
const USUAL_RETENTION_DAYS = 30;
const DAY_MS = 86_400_000;
/** So that a clock that is a little slow asks for nothing that the server has just forgotten. */
const SPARE_MS = 60_000;

/** The part of time that a range is now, as far as the workspace keeps its usage. */
export function windowWithin(range: Range, nowMs: number, state: UsageState | undefined): TimeWindow {
  const days = state?.retentionDays.verifications ?? USUAL_RETENTION_DAYS;
  return windowOf(range, nowMs, nowMs - days * DAY_MS + SPARE_MS);
}

/** Until when the counts are whole, Unix ms. Where that is not known nothing is made a gap. */
export const countedUntilOf = (state: UsageState | undefined): number =>
  state?.countedUntil ?? Number.POSITIVE_INFINITY;

/** Whose usage: of the workspace when nothing is said. */
export interface UsageOf extends UsageFilter {
  /** In the place of its key space. */
  readonly apiId?: string | undefined;
}

export interface Usage {
  readonly window: TimeWindow;
  /** The SQL behind it. */
  readonly sql: string;
  readonly outcomes: OutcomesOverTime | undefined;
  readonly isLoading: boolean;
  readonly error: ApiError | null;
  /** Unix ms; undefined when it is not known. */
  readonly countedUntilMs: number | undefined;
  /** Asks again, at once. */
  readonly again: () => void;
}

const NONE: UsageFilter = {};

/** Outcomes over time of a key, an owner, an API, or the workspace. */
export function useUsage({ apiId, ...given }: UsageOf = NONE, range: Range = "30d"): Usage {
  const state = useUsageState();
  const api = useRead("admin.resolveNames", { kind: "api", ids: [apiId ?? ""] }, { enabled: apiId !== undefined });
  const bucket = windowOf(range, 0).bucket;
  const [nowMs, again] = useNow(refreshMsOf(bucket));
  const window = useMemo(() => windowWithin(range, nowMs, state.data), [range, nowMs, state.data]);
  // An API that is not there has no usage: nothing has the id of an API for a key space.
  const keySpaceId = apiId === undefined ? given.keySpaceId : (api.data?.[0]?.keySpaceId ?? apiId);
  const sql = outcomesQuery(window, { ...given, keySpaceId });
  const isKnown = !state.isPending && (apiId === undefined || api.data !== undefined);
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
    outcomes,
    isLoading: rows.isPending && api.error === null,
    error: rows.error ?? api.error,
    countedUntilMs: state.data?.countedUntil,
    again,
  };
}
