import { QueryProblem } from "../problem.ts";
import type { Span } from "../tree.ts";

/** Problem of a query for which Postgres cannot return the same numbers as ClickHouse. */
export const unsupported = (detail: string, span: Span): QueryProblem =>
  new QueryProblem("invalid_analytics_query", detail, span);
