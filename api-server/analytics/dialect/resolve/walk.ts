import type { ResolvedExpression, ResolvedOrder } from "./resolved.ts";

/** The expressions directly within one, without those of subqueries. */
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

/** Whether the expression has one value in the whole query, which ClickHouse computes before it reads any row. */
export const isConstant = (expression: ResolvedExpression): boolean =>
  !contains(expression, ({ kind }) => VARYING.has(kind));

/** Whether the expression is, or has within it, one that `found` is true for. Each object is looked at once. */
export function contains(
  expression: ResolvedExpression,
  found: (one: ResolvedExpression) => boolean,
  seen = new Set<ResolvedExpression>(),
): boolean {
  if (seen.has(expression)) return false;
  seen.add(expression);
  return found(expression) || childrenOf(expression).some((child) => contains(child, found, seen));
}
