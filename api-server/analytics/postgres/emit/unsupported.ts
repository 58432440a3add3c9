import { QueryProblem } from "../../dialect/problem.ts";
import type { Span } from "../../dialect/tree.ts";

/** What ClickHouse can answer and Postgres cannot with the same numbers. */
export const unsupported = (detail: string, span: Span): QueryProblem =>
  new QueryProblem("invalid_analytics_query", detail, span);
