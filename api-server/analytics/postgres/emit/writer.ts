import type { ResolvedBody, ResolvedExpression } from "../../dialect/resolve/resolved.ts";
import type { Type } from "../../dialect/resolve/types.ts";
import type { Parameters } from "./parameters.ts";

/**
 * Writes expressions as Postgres SQL, within one SELECT. Every text it returns can stand as an operand. Integers of all widths are
 * `bigint`, comparisons the numbers 1 and 0, and only a Bool is Postgres's `boolean`.
 */
export interface Writer {
  readonly parameters: Parameters;
  /** Unix ms: what `now()` is. */
  readonly nowMs: number;
  value(expression: ResolvedExpression): string;
  /** As a `boolean`: where a condition is needed. */
  truth(expression: ResolvedExpression): string;
  /** As a value of another type that can hold it. */
  as(expression: ResolvedExpression, type: Type): string;
  /** A subquery, without parentheses. Its columns are named c1, c2, …, and are of these types. */
  body(body: ResolvedBody, types: readonly Type[]): string;
  /** Whether an aggregate can have no row at all, so that it needs a default. */
  readonly groupsCanBeEmpty: boolean;
}
