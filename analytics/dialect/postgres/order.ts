import type { ResolvedExpression, ResolvedOrder } from "../resolve/resolved.ts";
import { mayBeNaN } from "./nan.ts";
import type { Writer } from "./writer.ts";

/**
 * Emits an ORDER BY item, with null and NaN last in both directions, or first on request. `isStored` means that the expression is a table
 * column, which is never null. NULLS FIRST or LAST is then omitted, because Postgres reads an index backward only for the exact reverse of
 * the index's order.
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
