import { publishedFunction } from "../functions/registry.ts";
import { QueryProblem, quote } from "../problem.ts";
import type { Expression, Query } from "../tree.ts";
import { countNodes, walk } from "../walk.ts";

/* Rules of api-v2.md section 18.2 that need only one node at a time. Each rule returns all its violations. */

export const QUERY_BYTES_MAX = 16_384;
const NODES_MAX = 2_000;
const COLUMNS_MAX = 64;

export function sizeProblems(query: Query): readonly QueryProblem[] {
  const nodes = countNodes(query);
  if (nodes > NODES_MAX) {
    const detail = `the query has ${nodes} parts (names, literals, operators, calls …), more than ${NODES_MAX}`;
    return [new QueryProblem("invalid_analytics_query", detail, query.span)];
  }
  const problems: QueryProblem[] = [];
  walk(query, (part) => {
    if (part.kind !== "select" || part.columns.length <= COLUMNS_MAX) return true;
    const detail = `this SELECT has ${part.columns.length} columns, more than ${COLUMNS_MAX}`;
    const place = part.columns[COLUMNS_MAX] ?? part;
    problems.push(new QueryProblem("invalid_analytics_query", detail, place.span));
    return true;
  });
  return problems;
}

export function inProblems(query: Query): readonly QueryProblem[] {
  const problems: QueryProblem[] = [];
  walk(query, (part) => {
    if (part.kind !== "in" || "kind" in part.of) return true;
    const item = part.of.find((expression) => !isConstant(expression));
    if (item !== undefined) {
      const detail = "after IN, a list of literals or a subquery is expected; this is neither";
      problems.push(new QueryProblem("invalid_analytics_query", detail, item.span));
    }
    return true;
  });
  return problems;
}

/** Returns whether the expression consists of literals and calls on literals, such as `toDate('2024-01-31')`. */
function isConstant(expression: Expression): boolean {
  let constant = true;
  walk(expression, ({ kind }) => {
    if (kind === "name" || kind === "star" || kind === "subquery" || kind === "lambda") constant = false;
    return constant;
  });
  return constant;
}

export function functionProblems(query: Query): readonly QueryProblem[] {
  const problems: QueryProblem[] = [];
  walk(query, (part) => {
    if (part.kind !== "call" || publishedFunction(part.name.text) !== undefined) return true;
    const detail = `the function ${quote(part.name.text)} is not offered`;
    problems.push(new QueryProblem("invalid_analytics_function", detail, part.name.span));
    return true;
  });
  return problems;
}
