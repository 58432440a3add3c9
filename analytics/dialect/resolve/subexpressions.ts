import { invalidQuery } from "../problem.ts";
import type { ResolvedBody, ResolvedExpression, ResolvedOrder } from "./resolved.ts";

/** Returns the direct subexpressions, without those of subqueries. */
export function childrenOf(expression: ResolvedExpression): readonly ResolvedExpression[] {
  switch (expression.kind) {
    case "call":
      return expression.arguments;
    case "aggregate":
      return [...expression.arguments, ...present(expression.filter)];
    case "window":
      return [
        ...expression.arguments,
        ...present(expression.filter),
        ...expression.partitionBy,
        ...expression.orderBy.map((order: ResolvedOrder) => order.expression),
      ];
    case "cast":
      return [expression.operand];
    case "in":
      return Array.isArray(expression.of) ? [expression.operand, ...expression.of] : [expression.operand];
    case "arrayFilter":
      return [expression.array, expression.condition];
    case "literal":
    case "column":
    case "subquery":
    case "arrayJoin":
    case "variable":
      return [];
  }
}

const present = (expression: ResolvedExpression | undefined): readonly ResolvedExpression[] =>
  expression === undefined ? [] : [expression];

const VARYING: ReadonlySet<ResolvedExpression["kind"]> = new Set([
  ...(["column", "aggregate", "window", "subquery", "arrayJoin", "variable"] as const),
]);

/** Returns whether the expression has a single value for the complete query. ClickHouse evaluates such constants before it reads rows. */
export const isConstant = (expression: ResolvedExpression): boolean =>
  !contains(expression, ({ kind }) => VARYING.has(kind));

/** Returns whether `found` is true for the expression or one of its descendants. Each object is visited once. */
export function contains(
  expression: ResolvedExpression,
  found: (one: ResolvedExpression) => boolean,
  seen = new Set<ResolvedExpression>(),
): boolean {
  if (seen.has(expression)) return false;
  seen.add(expression);
  return found(expression) || childrenOf(expression).some((child) => contains(child, found, seen));
}

/** Maximum number of expressions after alias expansion. Nested aliases can double the size at each level. */
const EXPRESSIONS_MAX = 10_000;

/** @throws QueryProblem if a body exceeds the maximum after alias expansion. */
export function checkSize(body: ResolvedBody): void {
  if (body.kind === "set") return;
  const sizes = new Map<ResolvedExpression, number>();
  const { columns, arrayJoins, where, groupBy, having, orderBy, limitBy } = body;
  const sorted = [...orderBy.map(({ expression }) => expression), ...(limitBy?.by ?? [])];
  const all = [...columns, ...arrayJoins.map(({ operand }) => operand), where, ...groupBy, having, ...sorted];
  let total = 0;
  for (const expression of all) {
    if (expression) total += sizeOf(expression, sizes);
    if (total > EXPRESSIONS_MAX) {
      throw invalidQuery(`with aliases replaced the query has more than ${EXPRESSIONS_MAX} expressions`, body.span);
    }
  }
}

/** Returns the expanded size; each object is visited once. */
function sizeOf(expression: ResolvedExpression, sizes: Map<ResolvedExpression, number>): number {
  const known = sizes.get(expression);
  if (known !== undefined) return known;
  const size = childrenOf(expression).reduce((sum, child) => sum + sizeOf(child, sizes), 1);
  sizes.set(expression, size);
  return size;
}
