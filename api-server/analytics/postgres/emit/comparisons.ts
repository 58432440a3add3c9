import { commonType } from "../../dialect/resolve/common-type.ts";
import type { FunctionCall, ResolvedExpression } from "../../dialect/resolve/resolved.ts";
import { BOOL, FLOAT64, INT64, isDate, isNumeric, type Type } from "../../dialect/resolve/types.ts";
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

export type ComparisonName = keyof typeof OPERATORS;

export const isComparison = (name: string): name is ComparisonName => Object.hasOwn(OPERATORS, name);

/** A comparison as a `boolean`. Postgres has NaN equal to itself and above all numbers, ClickHouse compares it with nothing. */
export function comparisonSql(name: ComparisonName, { arguments: args }: FunctionCall, writer: Writer): string {
  const operands = args as readonly [ResolvedExpression, ResolvedExpression];
  const [a, b] = alignedSql(operands, writer);
  return operands.some(mayBeNaN) ? `analytics.${SNAKE[name]}(${a}, ${b})` : `(${a} ${OPERATORS[name]} ${b})`;
}

const SNAKE: Readonly<Record<ComparisonName, string>> = {
  equals: "equals",
  notEquals: "not_equals",
  less: "less",
  lessOrEquals: "less_or_equals",
  greater: "greater",
  greaterOrEquals: "greater_or_equals",
};

/** Both operands as values of one Postgres type. Dates are left as they are: Postgres compares them with one another. */
export function alignedSql(
  [left, right]: readonly [ResolvedExpression, ResolvedExpression],
  writer: Writer,
): readonly [string, string] {
  const type = alignedType(left.type, right.type);
  return type ? [writer.as(left, type), writer.as(right, type)] : [writer.value(left), writer.value(right)];
}

/** The type in which values of both are compared; undefined when they are comparable as they are. */
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
