import { useEffect, useRef, useState } from "react";
import { useApi } from "../../../api/api-context.ts";
import { ApiError } from "../../../api/api-error.ts";
import type { Rows } from "../../../usage/plot-choice.ts";
import { queryOf } from "../../../usage/sql-fragment.ts";

/** Result of the last query. */
export type QueryRun =
  | { readonly kind: "none" }
  | { readonly kind: "running"; readonly sql: string; readonly startedMs: number }
  | { readonly kind: "cancelled" }
  | { readonly kind: "failed"; readonly sql: string; readonly error: unknown }
  | {
      readonly kind: "answered";
      readonly sql: string;
      readonly rows: Rows;
      readonly columns: readonly string[];
      readonly tookMs: number;
      /** Unix ms. */
      readonly atMs: number;
    };

const PROCEDURES = {
  verifications: "analytics.getVerifications",
  ratelimits: "analytics.getRatelimits",
} as const;

/** Runs one query at a time: a new query replaces the running one. Leaving the page cancels the query, even in the analytics store. */
export function useQueryRun(): { run: QueryRun; start: (sql: string) => void; cancel: () => void } {
  const api = useApi();
  const [run, setRun] = useState<QueryRun>({ kind: "none" });
  const current = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => current.current?.abort(), []);

  const start = (sql: string): void => {
    current.current?.abort();
    const controller = new AbortController();
    current.current = controller;
    const startedMs = performance.now();
    const settle = (next: QueryRun): void => {
      if (current.current === controller) setRun(next);
    };
    setRun({ kind: "running", sql, startedMs });
    api.call(PROCEDURES[queryOf(sql)], { query: sql }, { signal: controller.signal }).then(
      ({ data }) =>
        settle({
          kind: "answered",
          sql,
          rows: data,
          columns: Object.keys(data[0] ?? {}),
          tookMs: performance.now() - startedMs,
          atMs: Date.now(),
        }),
      (error: unknown) =>
        settle(
          controller.signal.aborted && !(error instanceof ApiError)
            ? { kind: "cancelled" }
            : { kind: "failed", sql, error },
        ),
    );
  };
  return { run, start, cancel: () => current.current?.abort() };
}
