import {
  keepPreviousData,
  type UseMutationResult,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import { useApi } from "./api-context.ts";
import type { ApiError } from "./api-error.ts";
import type { CallOptions } from "./client.ts";

/*
 * React hooks for the API: `useRead` for one response, `usePages` for a list with cursors, `useChange` for a change. Responses are cached
 * by workspace, procedure and body, so two components that read the same data share one request.
 */

interface ReadOptions {
  /** Polling interval; the hook polls only while the page is visible. */
  readonly everyMs?: number;
  /** Whether the request is sent; `false` defers it. */
  readonly enabled?: boolean;
}

/** Reads one response and caches it. */
export function useRead<P extends Procedure>(
  procedure: P,
  body: Input<P>,
  { everyMs, enabled = true }: ReadOptions = {},
): UseQueryResult<Data<P>, ApiError> {
  const api = useApi();
  return useQuery<Data<P>, ApiError>({
    queryKey: [api.workspace, procedure, body],
    queryFn: async ({ signal }) => (await api.call(procedure, body, { signal })).data,
    enabled,
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
  });
}

/** The procedures that return a list. */
export type ListProcedure = {
  [P in Procedure]: Data<P> extends readonly unknown[] ? P : never;
}[Procedure];

export type Row<P extends ListProcedure> = Data<P> extends readonly (infer R)[] ? R : never;

/** The part of a list that has been read so far. */
export interface Pages<T> {
  readonly rows: readonly T[];
  /** Whether the first page is loading and there are no rows to show. */
  readonly isLoading: boolean;
  readonly isLoadingMore: boolean;
  readonly hasMore: boolean;
  /** Error of the last attempt. Rows that were read before stay visible. */
  readonly error: ApiError | null;
  /** Time at which the first page was read, Unix ms; 0 before the first response. */
  readonly readAtMs: number;
  readonly readMore: () => void;
  readonly again: () => void;
}

/** Maximum number of pages that are refreshed automatically. A longer list is refreshed only when the person requests it. */
const READ_AGAIN_PAGES_MAX = 3;

const isShort = ({
  state,
}: {
  readonly state: { readonly data?: { readonly pages: readonly unknown[] } | undefined };
}): boolean => (state.data?.pages.length ?? 0) <= READ_AGAIN_PAGES_MAX;

/** Number of rows per page. */
const PAGE_LIMIT = 100;

/** Reads a list page by page, on demand. The hook sets `limit` and `cursor` of the body. */
export function usePages<P extends ListProcedure>(
  procedure: P,
  body: Omit<Input<P>, "cursor" | "limit">,
  { everyMs, enabled = true }: ReadOptions = {},
): Pages<Row<P>> {
  const api = useApi();
  const query = useInfiniteQuery({
    queryKey: [api.workspace, procedure, body],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const page = { ...body, limit: PAGE_LIMIT, ...(pageParam === undefined ? {} : { cursor: pageParam }) };
      return api.call(procedure, page as unknown as Input<P>, { signal });
    },
    getNextPageParam: ({ next }) => next,
    // Keeps showing the rows of the previous filter while a person types a new one.
    placeholderData: keepPreviousData,
    enabled,
    refetchOnWindowFocus: isShort,
    refetchOnMount: isShort,
    refetchInterval: (list) => (everyMs !== undefined && isShort(list) ? everyMs : false),
  });
  const { data: read } = query;
  const rows = useMemo(() => read?.pages.flatMap(({ data }) => data as unknown as readonly Row<P>[]) ?? [], [read]);
  return {
    rows,
    isLoading: query.isPending && query.isFetching,
    isLoadingMore: query.isFetchingNextPage,
    hasMore: query.hasNextPage,
    error: query.error as ApiError | null,
    readAtMs: query.dataUpdatedAt,
    readMore: () => {
      if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
    },
    again: () => void query.refetch(),
  };
}

/**
 * Returns a function that reads all cached or pending responses of these procedures again. A request that was sent before a change may
 * return the old state, and invalidation alone does not repeat a first request that is still pending (see `Query.fetch` of TanStack Query).
 */
export function useReadAgain(): (procedures: readonly Procedure[]) => void {
  const { workspace } = useApi();
  const client = useQueryClient();
  return useCallback(
    (procedures) => {
      for (const name of procedures) {
        const queryKey = [workspace, name];
        void client.cancelQueries({ queryKey }).then(() => client.invalidateQueries({ queryKey }));
      }
    },
    [client, workspace],
  );
}

/** Returns a function that drops the cached response for an object that was deleted, so that no page shows it again. */
export function useForget(): <P extends Procedure>(procedure: P, body: Input<P>) => void {
  const { workspace } = useApi();
  const client = useQueryClient();
  return (procedure, body) => client.removeQueries({ queryKey: [workspace, procedure, body] });
}

/**
 * Returns a function that changes data and then reads the procedures in `refreshes` again. The result is not cached after its component is
 * removed, because it may be a secret. While a change is pending, no second one is sent, because a second click can arrive before the
 * button is disabled.
 */
export function useChange<P extends Procedure>(
  procedure: P,
  { refreshes, options }: { readonly refreshes: readonly Procedure[]; readonly options?: CallOptions },
): UseMutationResult<Data<P>, ApiError, Input<P>> {
  const api = useApi();
  const readAgain = useReadAgain();
  const isSent = useRef(false);
  const change = useMutation<Data<P>, ApiError, Input<P>>({
    mutationFn: async (body) => (await api.call(procedure, body, options)).data,
    gcTime: 0,
    onSettled: () => {
      isSent.current = false;
    },
    onSuccess: () => readAgain(refreshes),
  });
  const { mutate } = change;
  const send = useCallback<typeof mutate>(
    (...sent) => {
      if (isSent.current) return;
      isSent.current = true;
      mutate(...sent);
    },
    [mutate],
  );
  return { ...change, mutate: send };
}
