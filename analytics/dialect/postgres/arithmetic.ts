import { invalidQuery } from "../problem.ts";
import type { FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { isConstant } from "../resolve/subexpressions.ts";
import { FLOAT64, INT64, isDate, isInteger, type Type, widthOf, zoneOf } from "../resolve/types.ts";
import { localSql, timestampSql, type Writer } from "./writer.ts";

type Write = (call: FunctionCall, writer: Writer) => string;

const first = ({ arguments: [operand] }: FunctionCall): ResolvedExpression => operand as ResolvedExpression;
const both = ({ arguments: args }: FunctionCall) => args as readonly [ResolvedExpression, ResolvedExpression];

const OPERATORS = { plus: "+", minus: "-", multiply: "*" } as const;

/**
 * Emits arithmetic. 64-bit integers wrap in ClickHouse but cause an overflow error in Postgres, so a function emulates wrapping. Narrower
 * results cannot overflow. An unsigned result that is out of range is an error instead of wrapping.
 */
export const arithmeticSql =
  (name: keyof typeof OPERATORS): Write =>
  (call, writer) => {
    if (name !== "multiply" && isShift(call)) return shiftedSql(OPERATORS[name], call, writer);
    if (name === "minus" && isDifference(call)) return differenceSql(call, writer);
    const [left, right] = both(call);
    const float = call.type.name === "Float64";
    const [a, b] = [left, right].map((operand) => writer.as(operand, float ? FLOAT64 : INT64)) as [string, string];
    if (float || !isWide(call.type) || ![left, right].some(({ type }) => isWide(type)))
      return `(${a} ${OPERATORS[name]} ${b})`;
    return `analytics.${name}(${a}, ${b})`;
  };

/** Returns whether the type is a signed 64-bit integer. */
const isWide = (type: Type): boolean => isInteger(type) && widthOf(type).bits === 64 && widthOf(type).signed;

/** Emits a division of floats. Division by zero returns infinity or NaN. */
export const divideSql: Write = (call, writer) => {
  const [left, right] = both(call);
  const [a, b] = [left, right].map((operand) => writer.as(operand, FLOAT64)) as [string, string];
  const known = right.kind === "literal" && Number(right.value) !== 0 && Number.isFinite(Number(right.value));
  return known ? `(${a} / ${b})` : `analytics.divide(${a}, ${b})`;
};

/** Emits a modulo. ClickHouse rejects the minimum integer modulo -1, except if only the divisor is constant; the result is then 0. */
export const moduloSql: Write = (call, writer) => {
  const [left, right] = both(call);
  if (call.type.name === "Float64") throw invalidQuery("% of floats is not supported", call.span);
  if (isWide(left.type) && (isConstant(left) || !isConstant(right))) {
    return `analytics.modulo(${writer.as(left, INT64)}, ${writer.as(right, INT64)})`;
  }
  return `(${writer.as(left, INT64)} % ${writer.as(right, INT64)})`;
};

/** Emits an integer division. The quotient has the width of the dividend, so dividing 200, a UInt8, by -1 wraps to the Int8 56. */
export const integerDivisionSql: Write = (call, writer) => {
  const [left, right] = both(call);
  if (left.type.name === "Nothing" || right.type.name === "Nothing")
    throw invalidQuery("intDiv of null is not supported", call.span);
  const { bits, signed } = widthOf(call.type);
  const quotient = `(${writer.as(left, INT64)} / ${writer.as(right, INT64)})`;
  if (bits === 64 || !signed || widthOf(left.type).signed) return quotient;
  const half = 2 ** (bits - 1);
  return `(((${quotient} + ${half}) & ${2 ** bits - 1}) - ${half})`;
};

const DIGITS_MAX = 15;

/**
 * Emits `round`, `floor` and `ceil` to a number of digits after the decimal point, or before it if the number is negative. Floats round
 * half to even, and integers round half away from zero.
 */
export const roundingSql =
  (name: "round" | "floor" | "ceil"): Write =>
  (call, writer) => {
    const operand = first(call);
    const [, places] = call.arguments;
    const digits = places?.kind === "literal" ? Number(places.value) : 0;
    if (Math.abs(digits) > DIGITS_MAX) throw invalidQuery(`at most ${DIGITS_MAX} digits are supported`, call.span);
    if (operand.type.name === "Bool") return writer.value(operand);
    const value = writer.value(operand);
    if (isInteger(operand.type)) {
      return digits >= 0
        ? value
        : `analytics.${name}_whole(${value}, ${writer.parameters.bigint(10n ** BigInt(-digits))})`;
    }
    if (digits === 0) return `${name}(${value})`;
    const scale = writer.parameters.float(10 ** Math.abs(digits));
    return digits > 0 ? `(${name}(${value} * ${scale}) / ${scale})` : `(${name}(${value} / ${scale}) * ${scale})`;
  };

/** Adds an interval, or a number of days or seconds, to a date. */
function shiftedSql(sign: "+" | "-", call: FunctionCall, writer: Writer): string {
  const [left, right] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
  const [date, by] = isDate(left.type) ? [left, right] : [right, left];
  const distance = distanceSql(date, by, writer);
  const zone = byDays(by) ? zoneOf(date.type) : undefined;
  const there =
    zone === undefined
      ? `${timestampSql(date, writer)} ${sign} ${distance}`
      : `analytics.instant_of(${localSql(date, writer)} ${sign} ${distance}, ${writer.parameters.text(zone)})`;
  const moved = byMonths(by) && !call.type.nullable ? `greatest(${there}, timestamp '1970-01-01')` : there;
  if (call.type.name === "Date") return `analytics.wrapped_date((${moved})::date)`;
  return call.type.name === "DateTime" ? `analytics.wrapped_date_time(${moved})` : `(${moved})`;
}

/** Emits an interval of days or longer units. These are calendar units, so a day may have 23 hours. */
export const byDays = ({ type }: ResolvedExpression): boolean =>
  type.name === "Interval" && ["day", "week", "month", "quarter", "year"].includes(type.unit);

/**
 * Emits SQL that adds an interval to a time. If months are added, the result is at least the first representable day; with all other units,
 * it wraps.
 */
const byMonths = ({ type }: ResolvedExpression): boolean =>
  type.name === "Interval" && ["month", "quarter", "year"].includes(type.unit);

function distanceSql(date: ResolvedExpression, by: ResolvedExpression, writer: Writer): string {
  if (by.type.name === "Interval") return writer.value(by);
  return `${writer.as(by, INT64)} * interval '1 ${date.type.name === "Date" ? "day" : "second"}'`;
}

/** Emits the difference of two dates in days, or of two date-times in seconds. */
function differenceSql(call: FunctionCall, writer: Writer): string {
  const [left, right] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
  const [a, b] = [writer.value(left), writer.value(right)];
  if (left.type.name === "Date") return `(${a} - ${b})::bigint`;
  return `extract(epoch from ${a} - ${b})::bigint`;
}

const isShift = (call: FunctionCall): boolean =>
  isDate(call.type) && call.arguments.some(({ type }) => isDate(type) || type.name === "Interval");

const isDifference = (call: FunctionCall): boolean =>
  isInteger(call.type) && call.arguments.every(({ type }) => isDate(type));
