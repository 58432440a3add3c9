import { invalidQuery } from "../problem.ts";
import type { Span } from "../tree.ts";
import { commonType } from "./common-type.ts";
import { inZone } from "./conversion.ts";
import { isDateText, isStringLiteral, readAs, secondsText, valueLiteral } from "./literals.ts";
import { call, type ResolvedExpression } from "./resolved.ts";
import {
  DATE_TIME,
  dateTime64,
  INT64,
  isDate,
  isInteger,
  isNumeric,
  type Type,
  typeText,
  UINT8,
  UINT32,
  zoneOf,
} from "./types.ts";

export type ComparisonName = "equals" | "notEquals" | "less" | "lessOrEquals" | "greater" | "greaterOrEquals";

/** Returns whether an expression is `time` of a raw table, in ms. */
export type IsRawTime = (expression: ResolvedExpression) => boolean;

/** @throws QueryProblem if the operands are not comparable. */
export function comparison(
  name: ComparisonName,
  pair: readonly [ResolvedExpression, ResolvedExpression],
  { span, isRawTime }: { readonly span: Span; readonly isRawTime: IsRawTime },
): ResolvedExpression {
  return call(name, comparable(pair, { span, isRawTime }), UINT8, span);
}

/**
 * Converts two operands to comparable types: a string literal is parsed as the other operand's type, and a date that is compared with
 * `time` of a raw table becomes ms.
 */
export function comparable(
  [left, right]: readonly [ResolvedExpression, ResolvedExpression],
  { span, isRawTime }: { readonly span: Span; readonly isRawTime: IsRawTime },
): readonly [ResolvedExpression, ResolvedExpression] {
  const a = beside(right, left, isRawTime);
  const b = beside(left, right, isRawTime);
  if (!areComparable(a.type, b.type)) {
    throw invalidQuery(`${typeText(left.type)} and ${typeText(right.type)} cannot be compared`, span);
  }
  return [a, b];
}

/** Converts one operand for comparison with `other`. */
function beside(other: ResolvedExpression, operand: ResolvedExpression, isRawTime: IsRawTime): ResolvedExpression {
  if (isRawTime(other)) {
    if (isDate(operand.type)) return inMs(operand);
    if (isStringLiteral(operand) && isDateText(operand.value)) {
      return inMs(readAs(dateTime64(3), operand.value, operand.span));
    }
  }
  if (isStringLiteral(operand) && other.type.name !== "String" && other.type.name !== "Array") {
    return readAs(other.type, operand.value, operand.span);
  }
  if (operand.type.name === "Date") return inZone(operand, zoneOf(other.type));
  if (other.type.name === "DateTime" && isInteger(operand.type)) return secondsAsDateTime(operand);
  // Does not convert a column that is compared with a literal, so that an index stays usable.
  if (operand.type.name === "DateTime" && isInteger(other.type) && other.kind !== "literal") {
    return call("toUnixTimestamp", [operand], UINT32, operand.span);
  }
  return operand;
}

const inMs = (date: ResolvedExpression): ResolvedExpression =>
  call("toUnixTimestamp64Milli", [call("toDateTime64", [date], dateTime64(3), date.span)], INT64, date.span);

function secondsAsDateTime(operand: ResolvedExpression): ResolvedExpression {
  if (operand.kind !== "literal" || typeof operand.value !== "bigint") return operand;
  const { value, span } = operand;
  if (value < 0n || value >= 2n ** 32n)
    throw invalidQuery(`${value} is not a number of seconds that a DateTime can have`, span);
  return valueLiteral(secondsText(Number(value)), DATE_TIME, span);
}

function areComparable(one: Type, other: Type): boolean {
  if (one.name === "Nothing" || other.name === "Nothing") return true;
  if (one.name === "Interval" || other.name === "Interval") return false;
  if (isNumeric(one)) return isNumeric(other);
  if (isDate(one)) return isDate(other);
  if (one.name === "Array") return other.name === "Array" && commonType([one, other]) !== undefined;
  return one.name === other.name;
}
