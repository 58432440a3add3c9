import { useQueries } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useApi } from "../api/api-context.ts";
import { ApiError } from "../api/api-error.ts";
import { useMay } from "../api/session.ts";
import { useDelayed } from "../components/use-delayed.ts";
import { matching, SEARCH_KINDS, type SearchGroup, type SearchRow, withoutEmpty } from "./search-rows.ts";

/** Delay after the last keystroke before requests are sent. */
const SETTLED_MS = 150;
/** Maximum time for which fast responses wait for slow ones, so that the results appear together. */
const TOGETHER_MS = 500;

interface FoundObjects {
  readonly groups: readonly SearchGroup[];
  readonly isLoading: boolean;
  /** The failed action, such as "Searching the keys", and its error. */
  readonly problem: { readonly doing: string; readonly error: unknown } | undefined;
}

/**
 * Searches the objects of all kinds in parallel; the empty text finds none. A change of the text aborts the requests. Until the new results
 * arrive, returns only those earlier results that match the new text.
 */
export function useFoundObjects(text: string): FoundObjects {
  const api = useApi();
  const may = useMay();
  const kinds = SEARCH_KINDS.filter(({ required }) => required === undefined || may(required));
  const isSettled = useDelayed(text, SETTLED_MS) === text;
  const sent = isSettled ? text : "";
  const isLate = useDelayed(sent, TOGETHER_MS) === sent;
  const results = useQueries({
    queries: kinds.map(({ title, find }) => ({
      queryKey: [api.workspace, "search", title, sent],
      queryFn: ({ signal }: { signal: AbortSignal }) => find(api, sent, signal),
      enabled: sent !== "",
      retry: false,
      refetchOnWindowFocus: false,
      // Caches no results, because a search text may be part of a key.
      gcTime: 0,
    })),
  });
  const isLoading = text !== "" && (sent === "" || results.some(({ isPending }) => isPending));
  const last = useRef<readonly SearchGroup[]>([]);
  if (text === "") last.current = [];
  else if (sent !== "" && (isLate || !isLoading)) {
    last.current = withoutEmpty(kinds.map(({ title }, i) => ({ title, rows: results[i]?.data ?? [] })));
  } else last.current = matching(last.current, text);
  const failed = kinds.filter((_, i) => isProblem(results[i]?.error));
  const [error] = results.map((result) => result.error).filter(isProblem);
  const many = failed.length === kinds.length ? "everything" : `the ${failed.map((kind) => kind.many).join(", ")}`;
  return {
    groups: last.current,
    isLoading,
    problem: error === undefined ? undefined : { doing: `Searching ${many}`, error },
  };
}

/** Returns whether to show an error. A missing permission to read the objects is not shown. */
const isProblem = (error: unknown): boolean =>
  error !== null && error !== undefined && !(error instanceof ApiError && error.status === 403);

/**
 * Returns the highlighted row: the first row, until another one is set. The row stays highlighted when results arrive above it, so that
 * Enter never opens a row that has just moved into its place.
 */
export function useHighlight(
  rows: readonly SearchRow[],
): [SearchRow | undefined, setHighlighted: (id: string | undefined) => void] {
  const [id, setId] = useState<string>();
  const row = rows.find((one) => one.id === id) ?? rows[0];
  useEffect(() => setId(row?.id), [row?.id]);
  return [row, setId];
}
