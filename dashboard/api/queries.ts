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
 * All that pages do with the API: `useRead` for one answer, `usePages` for a list with cursors, `useChange` for what changes
 * something. An answer is kept by workspace, procedure and body, so two parts of a page that ask the same share one request.
 */

interface ReadOptions {
  /** Asks again after this time, while the page is visible. */
  readonly everyMs?: number;
  /** false: does not ask yet. */
  readonly enabled?: boolean;
}

/** Asks once and keeps the answer. */
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

/** The procedures whose answer is a list. */
export type ListProcedure = {
  [P in Procedure]: Data<P> extends readonly unknown[] ? P : never;
}[Procedure];

export type Row<P extends ListProcedure> = Data<P> extends readonly (infer R)[] ? R : never;

/** A list as far as it has been read. */
export interface Pages<T> {
  readonly rows: readonly T[];
  /** The first page is on its way, and there is nothing to show. */
  readonly isLoading: boolean;
  readonly isLoadingMore: boolean;
  readonly hasMore: boolean;
  /** Of the last attempt; what was read before stays. */
  readonly error: ApiError | null;
  /** When the first page was read; 0 before. */
  readonly readAtMs: number;
  readonly readMore: () => void;
  readonly again: () => void;
}

/** A list is read again by itself as long as that takes no more requests than this. Past it, the person asks for it. */
const READ_AGAIN_PAGES_MAX = 3;

const isShort = ({
  state,
}: {
  readonly state: { readonly data?: { readonly pages: readonly unknown[] } | undefined };
}): boolean => (state.data?.pages.length ?? 0) <= READ_AGAIN_PAGES_MAX;

/** How many rows a page of a list has. */
const PAGE_LIMIT = 100;

/** Reads a list page by page, and never all of it. `limit` and `cursor` of the body are its own. */
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
    // While somebody types a filter, the rows of the last one stay.
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
 * Returns what reads again all answers of these procedures that are kept or on their way: what was asked before a change may be answered without it,
 * and a first answer that is on its way is not asked for again by invalidation alone (as `Query.fetch` of TanStack Query documents).
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

/**
 * Changes something, and then reads again what the named procedures returned. What it returns is not kept past its component: it may
 * be a secret. While a change is on its way another one is not sent: a second click is quicker than the button that it turns off.
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
