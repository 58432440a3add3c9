import type { ResolvedExpression, ResolvedOrder } from "./resolved.ts";

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

/** Whether the expression has a single value in the whole query. ClickHouse evaluates constants before it reads rows. */
export const isConstant = (expression: ResolvedExpression): boolean =>
  !contains(expression, ({ kind }) => VARYING.has(kind));

/** Whether `found` returns true for the expression or one of its descendants. Each object is visited once. */
export function contains(
  expression: ResolvedExpression,
  found: (one: ResolvedExpression) => boolean,
  seen = new Set<ResolvedExpression>(),
): boolean {
  if (seen.has(expression)) return false;
  seen.add(expression);
  return found(expression) || childrenOf(expression).some((child) => contains(child, found, seen));
}
