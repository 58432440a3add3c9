import type { ResolvedExpression, ResolvedOrder } from "../../dialect/resolve/resolved.ts";
import { mayBeNaN } from "./nan.ts";
import type { Writer } from "./writer.ts";

/**
 * Null and NaN last in both directions, or first where the caller wants it. `isStored`: the expression is a column of a table, which has
 * no null. Then nothing is said of nulls, because an index is read backwards only for an order that is the exact reverse of its own.
 */
export function orderSql(
  { expression, descending, nullsFirst }: ResolvedOrder,
  writer: Writer,
  isStored: (expression: ResolvedExpression) => boolean = () => false,
): string {
  const value = writer.value(expression);
  const direction = descending ? "desc" : "asc";
  if (isStored(expression)) return `${value} ${direction}`;
  const nulls = `nulls ${nullsFirst ? "first" : "last"}`;
  const key = `${value} ${direction} ${nulls}`;
  return mayBeNaN(expression) ? `(${value} = 'NaN') ${nullsFirst ? "desc" : "asc"} ${nulls}, ${key}` : key;
}
