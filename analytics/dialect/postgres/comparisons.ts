import { commonType } from "../resolve/common-type.ts";
import type { FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { BOOL, FLOAT64, INT64, isDate, isNumeric, type Type } from "../resolve/types.ts";
import { mayBeNaN } from "./nan.ts";
import type { Writer } from "./writer.ts";

const OPERATORS = {
  equals: "=",
  notEquals: "<>",
  less: "<",
  lessOrEquals: "<=",
  greater: ">",
  greaterOrEquals: ">=",
} as const;

type ComparisonName = keyof typeof OPERATORS;

/**
 * Emits a `boolean` SQL comparison. In Postgres NaN equals itself and is above all numbers; in ClickHouse every comparison with NaN is
 * false.
 */
export const comparisonSql =
  (name: ComparisonName) =>
  ({ arguments: args }: FunctionCall, writer: Writer): string => {
    const operands = args as readonly [ResolvedExpression, ResolvedExpression];
    const ofDate = dateSql(name, operands, writer);
    if (ofDate !== undefined) return ofDate;
    const [a, b] = alignedSql(operands, writer);
    if (isEquality(name) && operands.every(({ type }) => type.name === "String")) {
      return `(${indexedText(a)} ${OPERATORS[name]} ${indexedText(b)})`;
    }
    return operands.some(mayBeNaN) ? `analytics.${SNAKE[name]}(${a}, ${b})` : `(${a} ${OPERATORS[name]} ${b})`;
  };

const isEquality = (name: ComparisonName): boolean => name === "equals" || name === "notEquals";

/**
 * Emits a text with the collation of the indexes. Valid only for equality. The views have collation "C" for ordering, but the indexes have
 * the default collation of the tables. Equality is the same in both, but Postgres uses an index only for comparisons in the index's
 * collation.
 */
export const indexedText = (sql: string): string => `(${sql} collate "default")`;

/**
 * Compares a Date, which means midnight, with a timestamp by comparing days. Postgres can also compare the two types directly, but only
 * above the view's security barrier and thus without an index.
 */
function dateSql(
  name: ComparisonName,
  [left, right]: readonly [ResolvedExpression, ResolvedExpression],
  writer: Writer,
): string | undefined {
  if (left.type.name !== "Date") {
    return right.type.name === "Date" ? dateSql(MIRRORED[name], [right, left], writer) : undefined;
  }
  if (right.type.name !== "DateTime" && right.type.name !== "DateTime64") return undefined;
  const [date, timestamp] = [writer.value(left), writer.value(right)];
  switch (name) {
    case "greater":
    case "lessOrEquals":
      return `(${date} ${OPERATORS[name]} ${timestamp}::date)`;
    case "greaterOrEquals":
    case "less":
      return `(${date} ${OPERATORS[name]} (${timestamp} - interval '1 microsecond')::date + 1)`;
    default:
      return undefined;
  }
}

const MIRRORED: Readonly<Record<ComparisonName, ComparisonName>> = {
  equals: "equals",
  notEquals: "notEquals",
  less: "greater",
  lessOrEquals: "greaterOrEquals",
  greater: "less",
  greaterOrEquals: "lessOrEquals",
};

const SNAKE: Readonly<Record<ComparisonName, string>> = {
  equals: "equals",
  notEquals: "not_equals",
  less: "less",
  lessOrEquals: "less_or_equals",
  greater: "greater",
  greaterOrEquals: "greater_or_equals",
};

/** Converts both operands to one Postgres type. Dates are unchanged, because Postgres compares the date types directly. */
export function alignedSql(
  [left, right]: readonly [ResolvedExpression, ResolvedExpression],
  writer: Writer,
): readonly [string, string] {
  const type = alignedType(left.type, right.type);
  return type ? [writer.as(left, type), writer.as(right, type)] : [writer.value(left), writer.value(right)];
}

/** Returns the type for the comparison; `undefined` if the operands need no conversion. */
export function alignedType(one: Type, other: Type): Type | undefined {
  if (one.name === "Nothing") return other;
  if (other.name === "Nothing") return one;
  if (isNumeric(one) && isNumeric(other)) {
    if (one.name === "Float64" || other.name === "Float64") return FLOAT64;
    return one.name === "Bool" && other.name === "Bool" ? BOOL : INT64;
  }
  if (isDate(one) && isDate(other)) return undefined;
  return commonType([one, other]);
}
