import { type ErrorKind, PublicError } from "../../../core/errors.ts";
import type { QueryRefused } from "../../analytics/contract.ts";
import { explainProblem, type QueryProblem } from "../../analytics/dialect/problem.ts";

/** What a query can be answered with instead of rows, in the order in which it is checked (api-v2.md section 18). */
export const QUERY_ERRORS: readonly ErrorKind[] = [
  "analytics_not_configured",
  "invalid_analytics_query",
  "invalid_analytics_query_type",
  "invalid_analytics_table",
  "invalid_analytics_function",
  "query_range_exceeds_retention",
  "query_quota_exceeded",
  "query_rows_limit_exceeded",
  "query_execution_timeout",
  "query_memory_limit_exceeded",
  "analytics_connection_failed",
];

const KINDS: Readonly<Record<Exclude<QueryRefused["reason"], "unavailable">, ErrorKind>> = {
  rows: "query_rows_limit_exceeded",
  timeout: "query_execution_timeout",
  memory: "query_memory_limit_exceeded",
  query: "invalid_analytics_query",
  notConfigured: "analytics_not_configured",
};

/** The error for a query that the store did not answer. An unreachable store has one text, which says nothing about it. */
export function refusedByStore(refused: QueryRefused): PublicError {
  const { reason, message } = refused;
  if (reason === "unavailable") {
    return new PublicError("analytics_connection_failed", "The store of usage analytics does not answer.", {
      cause: refused,
    });
  }
  return new PublicError(KINDS[reason], message, { cause: refused });
}

/** The error for a query that its text refuses. `text` is the caller's query. */
export function refusedByRule(problem: QueryProblem, text: string): PublicError {
  const message = explainProblem(problem, text);
  return new PublicError(problem.kind, message, { errors: [{ location: "body.query", message }], cause: problem });
}
