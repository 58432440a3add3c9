import type { QueryRejected } from "../../../analytics/contract.ts";
import { explainProblem, type QueryProblem } from "../../../analytics/dialect/problem.ts";
import { type ErrorKind, PublicError } from "../../../core/errors.ts";

/** Error kinds of a query, in the order of the checks (api-v2.md section 18). */
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

const KINDS: Readonly<Record<Exclude<QueryRejected["reason"], "unavailable">, ErrorKind>> = {
  rows: "query_rows_limit_exceeded",
  timeout: "query_execution_timeout",
  memory: "query_memory_limit_exceeded",
  query: "invalid_analytics_query",
  notConfigured: "analytics_not_configured",
};

/**
 * Returns the error for a query that the analytics store rejected. The message for an unreachable store is always the same, so it reveals
 * no details.
 */
export function refusedByStore(refused: QueryRejected): PublicError {
  const { reason, message } = refused;
  if (reason === "unavailable") {
    return new PublicError("analytics_connection_failed", "The analytics store does not respond; try again later.", {
      cause: refused,
    });
  }
  return new PublicError(KINDS[reason], message, { cause: refused });
}

/** Returns the error for an invalid query. `text` is the query as the caller sent it. */
export function refusedByRule(problem: QueryProblem, text: string): PublicError {
  const message = explainProblem(problem, text);
  return new PublicError(problem.kind, message, { errors: [{ location: "body.query", message }], cause: problem });
}
