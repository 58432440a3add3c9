import { QueryProblem } from "../problem.ts";
import type { Span } from "../tree.ts";

/** Problem of a query that has no meaning, or for which a store cannot return ClickHouse's result. */
export const refusal = (detail: string, span: Span): QueryProblem =>
  new QueryProblem("invalid_analytics_query", detail, span);
