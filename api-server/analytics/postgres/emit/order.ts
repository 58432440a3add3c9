import type { ResolvedOrder } from "../../dialect/resolve/resolved.ts";
import { mayBeNaN } from "./nan.ts";
import type { Writer } from "./writer.ts";

/** Null and NaN last in both directions, or first where the caller wants it. */
export function orderSql({ expression, descending, nullsFirst }: ResolvedOrder, writer: Writer): string {
  const value = writer.value(expression);
  const nulls = `nulls ${nullsFirst ? "first" : "last"}`;
  const key = `${value} ${descending ? "desc" : "asc"} ${nulls}`;
  return mayBeNaN(expression) ? `(${value} = 'NaN') ${nullsFirst ? "desc" : "asc"} ${nulls}, ${key}` : key;
}
