import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import {
  type Cursor,
  followLog,
  type LogFilter,
  type LogOf,
  type LogPage,
  type LogPart,
  logPage,
  logQuery,
  READ_ROWS,
  type RowOf,
} from "../usage/requests.ts";
import { useApi } from "./api-context.ts";
import type { ApiError } from "./api-error.ts";
import type { Pages } from "./queries.ts";
import { mayRetryUsage, type UsageProcedure } from "./use-usage.ts";

/* The log of requests. Each page, and each poll while the log is followed, is one SQL query, which counts against the workspace's quota. */

/** Polling interval while the log is followed. */
export const FOLLOW_EVERY_MS = 5000;
/** Longest expected delay until an event is stored. Events are not stored in order, so each poll reads this period again. */
const LATE_MS = 120_000;

const PROCEDURES = {
  verifications: "analytics.getVerifications",
  ratelimits: "analytics.getRatelimits",
} as const satisfies Readonly<Record<LogOf, UsageProcedure>>;

interface ReadPage<T extends RowOf[LogOf]> extends LogPage<T> {
  readonly readAtMs: number;
}

interface Pagination<T extends RowOf[LogOf]> {
  readonly pages: readonly ReadPage<T>[];
}

/** Returns all pages of the log as a single page. */
function joined<T extends RowOf[LogOf]>({ pages }: Pagination<T>): ReadPage<T> | undefined {
  const [[first], last] = [pages, pages.at(-1)];
  return first && last && { ...first, rows: pages.flatMap(({ rows }) => rows), next: last.next };
}

export interface Log<T> extends Pages<T> {
  /** New rows that are not in the list yet, because adding them would move the rows that the person is reading. */
  readonly waiting: { readonly count: number; readonly hasMore: boolean };
  readonly showWaiting: () => void;
  /** Error that stopped the polls. */
  readonly followError: ApiError | null;
  readonly followAgain: () => void;
}

/** Reads the log page by page. */
export function useRequests<Of extends LogOf>({
  of,
  filter,
  rangeMs,
  clockMs,
  enabled,
  isFollowing,
  isReading,
}: {
  of: Of;
  filter: LogFilter;
  rangeMs: number;
  /** How far the server's clock is ahead of the browser's, ms. */
  clockMs: number;
  enabled: boolean;
  /** Whether to poll for new rows. */
  isFollowing: boolean;
  /** Returns whether adding new rows would move a row that the person is reading. */
  isReading: () => boolean;
}): Log<RowOf[Of]> {
  type Row = RowOf[Of];
  const api = useApi();
  const client = useQueryClient();
  const [round, setRound] = useState(0);
  const queryKey = [api.workspace, PROCEDURES[of], "log", filter, rangeMs, round];

  const readPart = async (part: LogPart, signal: AbortSignal): Promise<ReadPage<Row>> => {
    const readAtMs = Date.now();
    const { data } = await api.call(PROCEDURES[of], { query: logQuery(of, part, filter) }, { signal });
    return { ...logPage<Row>(READ_ROWS[of](data), part.sinceMs), readAtMs };
  };
  const shared = { staleTime: Number.POSITIVE_INFINITY, gcTime: 0, retry: mayRetryUsage };
  const list = useInfiniteQuery({
    ...shared,
    queryKey,
    initialPageParam: undefined as Cursor | undefined,
    queryFn: ({ pageParam, signal }) => readPart(pageParam ?? { sinceMs: Date.now() + clockMs - rangeMs }, signal),
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    enabled,
  });
  const isOwn = list.isSuccess && !list.isPlaceholderData;
  const mayPoll = ({ state: { error } }: { state: { error: unknown } }): boolean => error === null;
  const live = useQuery({
    ...shared,
    queryKey: [...queryKey, "newest"],
    queryFn: ({ signal }) => {
      const readAtMs = client.getQueryData<Pagination<Row>>(queryKey)?.pages[0]?.readAtMs ?? Date.now();
      return readPart({ sinceMs: readAtMs + clockMs - LATE_MS }, signal);
    },
    enabled: enabled && isFollowing && isOwn,
    staleTime: 0,
    refetchInterval: (query) => (mayPoll(query) ? FOLLOW_EVERY_MS : false),
    refetchOnWindowFocus: mayPoll,
  });

  const log = useMemo(() => list.data && joined<Row>(list.data as Pagination<Row>), [list.data]);
  const followed = useMemo(
    () => (isFollowing && isOwn && log && live.data ? followLog<Row>(log, live.data) : undefined),
    [isFollowing, isOwn, log, live.data],
  );
  const readAtMs = live.data?.readAtMs ?? 0;
  const show = (): void => {
    if (followed === undefined || list.isFetchingNextPage) return;
    client.setQueryData(queryKey, { pages: [{ ...followed.page, readAtMs }], pageParams: [undefined] });
  };
  useEffect(() => {
    if (log !== undefined && log.readAtMs < readAtMs && !isReading()) show();
  });

  const { hasNextPage, fetchNextPage } = list;
  const readMore = useCallback(() => {
    if (hasNextPage) void fetchNextPage({ cancelRefetch: false });
  }, [hasNextPage, fetchNextPage]);
  const rows = useMemo(() => log?.rows ?? [], [log]);
  return {
    rows,
    isLoading: list.isPending && list.isFetching,
    isLoadingMore: list.isFetchingNextPage,
    hasMore: hasNextPage,
    error: list.error as ApiError | null,
    readAtMs: log?.readAtMs ?? 0,
    readMore,
    // If a page after the first one failed, retries only that page, so that the list keeps its rows. Otherwise, reads the log again from
    // the newest row.
    again: () => (list.isFetchNextPageError ? readMore() : setRound(round + 1)),
    waiting: { count: followed?.added ?? 0, hasMore: followed?.hasMore ?? false },
    showWaiting: show,
    followError: isFollowing ? (live.error as ApiError | null) : null,
    followAgain: () => void live.refetch(),
  };
}
