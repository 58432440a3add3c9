import type { ResolvedBody, ResolvedExpression } from "../resolve/resolved.ts";
import { type Type, zoneOf } from "../resolve/types.ts";
import type { Parameters } from "./parameters.ts";

/**
 * Emits expressions of one SELECT as Postgres SQL. Each result can be used as an operand. Integers of all widths are `bigint`. Comparisons
 * are the numbers 1 and 0; only a Bool is a Postgres `boolean`.
 */
export interface Writer {
  readonly parameters: Parameters;
  /** Value of `now()`, in Unix ms. */
  readonly nowMs: number;
  value(expression: ResolvedExpression): string;
  /** Emits a condition as `boolean`. */
  truth(expression: ResolvedExpression): string;
  /** Emits the value converted to another type that can represent it. */
  as(expression: ResolvedExpression, type: Type): string;
  /** Emits a subquery without parentheses, with columns c1, c2, … of these types. */
  body(body: ResolvedBody, types: readonly Type[]): string;
  /** Whether an aggregate may have no input rows, so that it needs a default. */
  readonly groupsCanBeEmpty: boolean;
}

/** Emits a date as a timestamp. With a Postgres `date`, `date_trunc` would return a value in the time zone of the session. */
export const timestampSql = (date: ResolvedExpression, writer: Writer): string =>
  date.type.name === "Date" || date.type.name === "Nothing" ? `${writer.value(date)}::timestamp` : writer.value(date);

/** Emits a time as the local time of its zone; without a zone, times are in UTC. */
export function localSql(time: ResolvedExpression, writer: Writer): string {
  const sql = timestampSql(time, writer);
  const zone = zoneOf(time.type);
  return zone === undefined ? sql : `(${sql} at time zone 'UTC' at time zone ${writer.parameters.text(zone)})`;
}
