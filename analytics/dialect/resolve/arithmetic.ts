import { invalidQuery } from "../problem.ts";
import type { IntervalUnit, Span } from "../tree.ts";
import { isStringLiteral, readAs } from "./literals.ts";
import { call, type ResolvedExpression } from "./resolved.ts";
import {
  DATE,
  DATE_TIME,
  dateTime64,
  FLOAT64,
  INT32,
  INT64,
  type IntervalType,
  integer,
  isDate,
  isInteger,
  isNumeric,
  type Type,
  typeText,
  widthOf,
  withZone,
  zoneOf,
} from "./types.ts";

/*
 * Operators with ClickHouse's type rules: narrow integers widen to avoid overflow, 64-bit integers wrap, `/` returns a float, adding a
 * number to a date adds days, and adding a number to a date-time adds seconds.
 */

export type ArithmeticName = "plus" | "minus" | "multiply" | "divide" | "modulo";

const SIGNS: Readonly<Record<ArithmeticName, string>> = {
  plus: "+",
  minus: "-",
  multiply: "*",
  divide: "/",
  modulo: "%",
};

/** @throws QueryProblem if the operator is undefined for the types. */
export function arithmetic(
  name: ArithmeticName,
  left: ResolvedExpression,
  right: ResolvedExpression,
  span: Span,
): ResolvedExpression {
  const type = resultType(name, left.type, right.type);
  if (type === undefined) {
    throw invalidQuery(`${SIGNS[name]} is not defined for ${typeText(left.type)} and ${typeText(right.type)}`, span);
  }
  return call(name, [left, right], type, span);
}

export function negation(operand: ResolvedExpression, span: Span): ResolvedExpression {
  const { type } = operand;
  if (type.name === "Nothing") return operand;
  if (!isNumeric(type)) throw invalidQuery(`- is not defined for ${typeText(type)}`, span);
  const { bits, signed } = widthOf(type);
  return call("negate", [operand], isFloat(type) ? type : integer(signed ? bits : bits * 2, true), span);
}

const isFloat = (type: Type): boolean => type.name === "Float64";

function resultType(name: ArithmeticName, left: Type, right: Type): Type | undefined {
  if (left.name === "Nothing") return right.name === "Array" ? undefined : right;
  if (right.name === "Nothing") return left.name === "Array" ? undefined : left;
  if (isNumeric(left) && isNumeric(right)) return numberType(name, left, right);
  if (name !== "plus" && name !== "minus") return undefined;
  if (isDate(left)) return dateType(name, left, right);
  return name === "plus" && isDate(right) ? dateType(name, right, left) : undefined;
}

function numberType(name: ArithmeticName, left: Type, right: Type): Type {
  if (name === "divide" || isFloat(left) || isFloat(right)) return FLOAT64;
  const [a, b] = [widthOf(left), widthOf(right)];
  if (name === "modulo") return integer(a.signed ? b.bits * 2 : b.bits, a.signed || b.signed);
  return integer(Math.max(a.bits, b.bits) * 2, name === "minus" || a.signed || b.signed);
}

function dateType(name: "plus" | "minus", date: Type, other: Type): Type | undefined {
  if (isInteger(other)) return date;
  if (other.name === "Interval") return dateAndInterval(date, other);
  if (name === "plus" || date.name === "DateTime64") return undefined;
  return other.name === date.name ? INT32 : undefined;
}

const SUBSECONDS: Readonly<Partial<Record<IntervalType["unit"], number>>> = {
  millisecond: 3,
  microsecond: 6,
  nanosecond: 9,
};

function dateAndInterval(date: Type, { unit }: IntervalType): Type | undefined {
  const scale = SUBSECONDS[unit];
  if (scale !== undefined) {
    return date.name === "Date"
      ? undefined
      : withZone(dateTime64(Math.max(scale, date.name === "DateTime64" ? date.scale : 0)), zoneOf(date));
  }
  if (date.name !== "Date") return date;
  return unit === "second" || unit === "minute" || unit === "hour" ? DATE_TIME : DATE;
}

/** Resolves `INTERVAL amount UNIT`. */
export function interval(amount: ResolvedExpression, unit: IntervalUnit, span: Span): ResolvedExpression {
  const number = isStringLiteral(amount) ? readAs(INT64, amount.value, amount.span) : amount;
  if (!isInteger(number.type))
    throw invalidQuery(`an interval is a whole number of units, not ${typeText(number.type)}`, amount.span);
  return call("toInterval", [number], { name: "Interval", unit, nullable: false }, span);
}
