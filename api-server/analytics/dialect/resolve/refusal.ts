import { QueryProblem } from "../problem.ts";
import type { Span } from "../tree.ts";

/** A query that cannot mean anything, or that no store here can answer as ClickHouse would. */
export const refusal = (detail: string, span: Span): QueryProblem =>
  new QueryProblem("invalid_analytics_query", detail, span);
