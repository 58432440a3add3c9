import type { IntervalUnit, Span } from "../tree.ts";
import { call } from "./calls.ts";
import { commonType } from "./common-type.ts";
import { isStringLiteral, readAs, valueLiteral } from "./literals.ts";
import { refusal } from "./refusal.ts";
import type { FunctionName, ResolvedExpression } from "./resolved.ts";
import {
  DATE,
  DATE_TIME,
  dateTime64,
  FLOAT64,
  INT32,
  INT64,
  integer,
  isDate,
  isInteger,
  isNumeric,
  STRING,
  type Type,
  typeText,
  UINT8,
  UINT32,
  UINT64,
  widthOf,
  withNull,
} from "./types.ts";

/*
 * Scalar functions: argument counts, argument types and result types. An argument that selects a variant of the function, such as a unit or
 * a mode, must be a literal.
 */

type Arguments = readonly ResolvedExpression[];

interface Called {
  /** Name as written in the query. */
  readonly name: string;
  readonly args: Arguments;
  readonly span: Span;
}

type Resolve = (called: Called) => ResolvedExpression;

interface OfKind {
  readonly is: (type: Type) => boolean;
  readonly called: string;
}

const TEXT: OfKind = { is: ({ name }) => name === "String", called: "a String" };
const NUMBER: OfKind = { is: isNumeric, called: "a number" };
const WHOLE: OfKind = { is: isInteger, called: "a whole number" };
const TIMESTAMP: OfKind = { is: isDate, called: "a Date or DateTime" };
const CLOCK: OfKind = { is: ({ name }) => name === "DateTime" || name === "DateTime64", called: "a DateTime" };
const MILLIS: OfKind = { is: ({ name }) => name === "DateTime64", called: "a DateTime64" };
const ARRAY: OfKind = { is: ({ name }) => name === "Array", called: "an Array" };
const ANY: OfKind = { is: ({ name }) => name !== "Interval", called: "a value" };

/** Returns the resolver of a scalar function by its lower-case name; `undefined` for any other name. */
export const functionNamed = (lowerName: string): Resolve | undefined =>
  Object.hasOwn(FUNCTIONS, lowerName) ? FUNCTIONS[lowerName] : undefined;

/** Describes a function whose arguments have fixed kinds; arguments after the first `required` ones are optional. */
function plain(
  name: FunctionName,
  kinds: readonly OfKind[],
  type: Type | ((args: Arguments) => Type),
  required = kinds.length,
): Resolve {
  return (called) => {
    const args = checked(called, kinds, required);
    return call(name, args, typeof type === "function" ? type(args) : type, called.span);
  };
}

function checked({ name, args, span }: Called, kinds: readonly OfKind[], required = kinds.length): Arguments {
  if (args.length < required || args.length > kinds.length) {
    const requested = required === kinds.length ? `${required}` : `${required} to ${kinds.length}`;
    throw refusal(`${name} takes ${requested} arguments, not ${args.length}`, span);
  }
  args.forEach((argument, index) => {
    const kind = kinds[index];
    if (kind && !kind.is(argument.type) && argument.type.name !== "Nothing") {
      throw refusal(`${name} takes ${kind.called} here, not ${typeText(argument.type)}`, argument.span);
    }
  });
  return args;
}

const typeOfFirst = ([first]: Arguments): Type => first?.type ?? STRING;

/** Reads a literal that selects a variant of a function. */
function literalText(argument: ResolvedExpression | undefined, { name, span }: Called): string {
  if (argument && isStringLiteral(argument)) return argument.value;
  throw refusal(`${name} takes a string literal here`, argument?.span ?? span);
}

function literalInteger(argument: ResolvedExpression | undefined, { name, span }: Called): bigint {
  if (argument?.kind === "literal" && typeof argument.value === "bigint") return argument.value;
  throw refusal(`${name} takes a whole number here, written as a literal`, argument?.span ?? span);
}

/** Removes the time zone argument at `place`, because all times are in UTC. */
function withoutZone(called: Called, place: number): Called {
  if (called.args.length <= place) return called;
  const zone = literalText(called.args[place], called);
  if (!/^(utc|etc\/utc)$/i.test(zone))
    throw refusal("times are in UTC; other time zones are not supported", called.span);
  return { ...called, args: called.args.toSpliced(place, 1) };
}

/** `toDate`, `toDateTime`: string literals are parsed during resolution. */
function toTimestamp(name: "toDate" | "toDateTime", type: Type): Resolve {
  return (written) => {
    const called = withoutZone(written, 1);
    const [operand] = checked(called, [ANY]) as [ResolvedExpression];
    return timestamp(name, type, operand, called);
  };
}

function timestamp(
  name: "toDate" | "toDateTime" | "toDateTime64",
  type: Type,
  operand: ResolvedExpression,
  called: Called,
) {
  if (isStringLiteral(operand))
    return readAs(type, /^\d{5,10}$/.test(operand.value) ? fromSeconds(operand.value) : operand.value, operand.span);
  if (!isDate(operand.type) && !isNumeric(operand.type) && operand.type.name !== "Nothing") {
    throw refusal(
      `${called.name} takes a date, a number or a string literal, not ${typeText(operand.type)}`,
      operand.span,
    );
  }
  return call(name, [operand], type, called.span);
}

const fromSeconds = (digits: string): string => new Date(Number(digits) * 1000).toISOString();

const scaleOf = (called: Called, place: number): number => {
  const scale = called.args.length > place ? literalInteger(called.args[place], called) : 3n;
  if (scale < 0n || scale > 9n) throw refusal(`${called.name} takes 0 to 9 digits`, called.span);
  return Number(scale);
};

const toDateTime64: Resolve = (written) => {
  const called = withoutZone(written, 2);
  if (called.args.length !== 2)
    throw refusal(`${called.name} takes 2 arguments, not ${called.args.length}`, called.span);
  const [operand] = called.args as [ResolvedExpression];
  return timestamp("toDateTime64", dateTime64(scaleOf(called, 1)), operand, called);
};

const now64: Resolve = (called) => {
  checked(called, [WHOLE], 0);
  return call("now64", [], dateTime64(scaleOf(called, 0)), called.span);
};

type StartName = Extract<FunctionName, `toStartOf${string}`>;

function toStart(name: StartName, kind: OfKind, type: Type): Resolve {
  return (written) => plain(name, [kind], type)(withoutZone(written, 1));
}

const toStartOfWeek: Resolve = (written) => {
  const called = withoutZone(written, 2);
  checked(called, [TIMESTAMP, WHOLE], 1);
  const mode = called.args.length > 1 ? literalInteger(called.args[1], called) : 0n;
  return startOfWeek(called.args[0] as ResolvedExpression, mode % 2n !== 0n, called.span);
};

const startOfWeek = (operand: ResolvedExpression, fromMonday: boolean, span: Span): ResolvedExpression =>
  call("toStartOfWeek", [operand, valueLiteral(fromMonday ? 1n : 0n, UINT8, span)], DATE, span);

const TRUNCATED: Readonly<Record<string, Resolve>> = {
  minute: toStart("toStartOfMinute", CLOCK, DATE_TIME),
  hour: toStart("toStartOfHour", CLOCK, DATE_TIME),
  day: toStart("toStartOfDay", TIMESTAMP, DATE_TIME),
  week: (called) => startOfWeek(checked(called, [TIMESTAMP])[0] as ResolvedExpression, true, called.span),
  month: toStart("toStartOfMonth", TIMESTAMP, DATE),
  quarter: toStart("toStartOfQuarter", TIMESTAMP, DATE),
  year: toStart("toStartOfYear", TIMESTAMP, DATE),
};

const dateTrunc: Resolve = (written) => {
  const called = withoutZone(written, 2);
  const unit = literalText(called.args[0], called).toLowerCase();
  const truncate = Object.hasOwn(TRUNCATED, unit) ? TRUNCATED[unit] : undefined;
  if (!truncate) throw refusal(`'${unit}' is not one of ${Object.keys(TRUNCATED).join(", ")}`, called.span);
  return truncate({ ...called, args: called.args.slice(1) });
};

const formatDateTime: Resolve = (written) => {
  const called = withoutZone(written, 2);
  const args = checked(called, [TIMESTAMP, TEXT]);
  literalText(args[1], called);
  return call("formatDateTime", args, STRING, called.span);
};

const toInterval =
  (unit: IntervalUnit): Resolve =>
  ({ args, ...called }) =>
    interval(checked({ args, ...called }, [ANY])[0] as ResolvedExpression, unit, called.span);

/** Resolves `INTERVAL amount UNIT`. */
export function interval(amount: ResolvedExpression, unit: IntervalUnit, span: Span): ResolvedExpression {
  const number = isStringLiteral(amount) ? readAs(INT64, amount.value, amount.span) : amount;
  if (!isInteger(number.type))
    throw refusal(`an interval is a whole number of units, not ${typeText(number.type)}`, amount.span);
  return call("toInterval", [number], { name: "Interval", unit, nullable: false }, span);
}

const concat: Resolve = (called) => {
  if (called.args.length === 0) throw refusal(`${called.name} takes at least 1 argument`, called.span);
  return concatenation(called.args, called.span);
};

/** Resolves `||` and `concat`; other types are converted to String. */
export function concatenation(operands: Arguments, span: Span): ResolvedExpression {
  return call("concat", operands.map(asText), STRING, span);
}

function asText(operand: ResolvedExpression): ResolvedExpression {
  if (operand.type.name === "String" || operand.type.name === "Nothing") return operand;
  return call("toString", [operand], STRING, operand.span);
}

const toText: Resolve = (called) => {
  const [operand] = checked(called, [ANY]) as [ResolvedExpression];
  return asText(operand);
};

const substring: Resolve = plain("substring", [TEXT, WHOLE, WHOLE], STRING, 2);

const length: Resolve = plain(
  "length",
  [{ is: (type) => TEXT.is(type) || ARRAY.is(type), called: "a String or an Array" }],
  UINT64,
);

const extractString: Resolve = (called) => {
  if (called.args.length < 1) throw refusal(`${called.name} takes at least 1 argument`, called.span);
  checked(called, [
    TEXT,
    ...called.args
      .slice(1)
      .map(() => ({ is: (type: Type) => TEXT.is(type) || WHOLE.is(type), called: "a key or index" })),
  ]);
  return call("JSONExtractString", called.args, STRING, called.span);
};

/** `round`, `floor` and `ceil` keep the type; the number of digits must be a literal. */
const rounding =
  (name: "round" | "floor" | "ceil"): Resolve =>
  (called) => {
    const args = checked(called, [NUMBER, WHOLE], 1);
    if (args.length > 1) literalInteger(args[1], called);
    return call(name, args, typeOfFirst(args), called.span);
  };

const abs: Resolve = plain("abs", [NUMBER], (args) => {
  const type = typeOfFirst(args);
  return isInteger(type) || type.name === "Bool" ? integer(widthOf(type).bits, false) : type;
});

/** `toInt64` and similar functions: string literals are parsed during resolution. */
const toNumber =
  (name: "toInt32" | "toInt64" | "toFloat64", type: Type): Resolve =>
  (called) => {
    const [operand] = checked(called, [ANY]) as [ResolvedExpression];
    if (operand.type.name === "Array") throw refusal(`${called.name} takes no Array`, operand.span);
    return call(
      name,
      [isStringLiteral(operand) ? readAs(type, operand.value, operand.span) : operand],
      type,
      called.span,
    );
  };

/** `if`: the condition must be a Bool or a comparison, as in ClickHouse. */
const choose: Resolve = (called) => {
  if (called.args.length !== 3)
    throw refusal(`${called.name} takes 3 arguments, not ${called.args.length}`, called.span);
  return choice(called.args, called.span);
};

/** Resolves alternating conditions and values, followed by a default value. */
export function choice(args: Arguments, span: Span): ResolvedExpression {
  const isValue = (_: ResolvedExpression, index: number) => index % 2 === 1 || index === args.length - 1;
  const conditions = args.filter((argument, index) => !isValue(argument, index));
  const wrong = conditions.find(({ type }) => !["UInt8", "Bool", "Nothing"].includes(type.name));
  if (wrong) throw refusal(`a condition is a comparison or a Bool, not ${typeText(wrong.type)}`, wrong.span);
  const values = args.filter(isValue);
  const type = sharedType(values, span);
  return call("multiIf", args, type, span, type.nullable);
}

/** @throws QueryProblem if the values have no common type. */
export function sharedType(values: Arguments, span: Span): Type {
  const type = commonType(values.map((value) => value.type));
  if (type) return type;
  throw refusal(`no type holds ${[...new Set(values.map((value) => typeText(value.type)))].join(" and ")}`, span);
}

const coalesce: Resolve = (called) => {
  if (called.args.length === 0) throw refusal(`${called.name} takes at least 1 argument`, called.span);
  const type = sharedType(called.args, called.span);
  const nullable = called.args.every((argument) => argument.type.nullable);
  return call("coalesce", called.args, withNull(type, nullable), called.span, nullable);
};

/** The needle, or all elements, may differ in type from the array if one of the two types includes the other. */
const membership =
  (name: "has" | "hasAny" | "hasAll"): Resolve =>
  (called) => {
    const args = checked(called, [ARRAY, name === "has" ? ANY : ARRAY]);
    const [array, other] = args as [ResolvedExpression, ResolvedExpression];
    const elementsOf = ({ type }: ResolvedExpression) => (type.name === "Array" ? type.of : type);
    // The needle of `has` is a single element, so an array is invalid for an array of strings.
    if (commonType([elementsOf(array), name === "has" ? other.type : elementsOf(other)]) === undefined) {
      throw refusal(`${typeText(array.type)} cannot have ${typeText(other.type)}`, called.span);
    }
    return call(name, args, UINT8, called.span, false);
  };

const FUNCTIONS: Readonly<Record<string, Resolve>> = {
  now: plain("now", [], DATE_TIME),
  now64,
  today: plain("today", [], DATE),
  todate: toTimestamp("toDate", DATE),
  todatetime: toTimestamp("toDateTime", DATE_TIME),
  todatetime64: toDateTime64,
  tostartofminute: toStart("toStartOfMinute", CLOCK, DATE_TIME),
  tostartofhour: toStart("toStartOfHour", CLOCK, DATE_TIME),
  tostartofday: toStart("toStartOfDay", TIMESTAMP, DATE_TIME),
  tostartofweek: toStartOfWeek,
  tostartofmonth: toStart("toStartOfMonth", TIMESTAMP, DATE),
  tostartofquarter: toStart("toStartOfQuarter", TIMESTAMP, DATE),
  tostartofyear: toStart("toStartOfYear", TIMESTAMP, DATE),
  date_trunc: dateTrunc,
  formatdatetime: formatDateTime,
  fromunixtimestamp64milli: (called) =>
    plain("fromUnixTimestamp64Milli", [WHOLE], dateTime64(3))(withoutZone(called, 1)),
  tounixtimestamp64milli: plain("toUnixTimestamp64Milli", [MILLIS], INT64),
  tounixtimestamp: (called) => plain("toUnixTimestamp", [TIMESTAMP], UINT32)(withoutZone(called, 1)),
  tointervalnanosecond: toInterval("nanosecond"),
  tointervalmicrosecond: toInterval("microsecond"),
  tointervalmillisecond: toInterval("millisecond"),
  tointervalsecond: toInterval("second"),
  tointervalminute: toInterval("minute"),
  tointervalhour: toInterval("hour"),
  tointervalday: toInterval("day"),
  tointervalweek: toInterval("week"),
  tointervalmonth: toInterval("month"),
  tointervalquarter: toInterval("quarter"),
  tointervalyear: toInterval("year"),
  lower: plain("lower", [TEXT], STRING),
  upper: plain("upper", [TEXT], STRING),
  substring,
  concat,
  length,
  trim: plain("trim", [TEXT], STRING),
  startswith: plain("startsWith", [TEXT, TEXT], UINT8),
  endswith: plain("endsWith", [TEXT, TEXT], UINT8),
  jsonextractstring: extractString,
  round: rounding("round"),
  floor: rounding("floor"),
  ceil: rounding("ceil"),
  abs,
  if: choose,
  coalesce,
  tostring: toText,
  toint32: toNumber("toInt32", INT32),
  toint64: toNumber("toInt64", INT64),
  tofloat64: toNumber("toFloat64", FLOAT64),
  has: membership("has"),
  hasany: membership("hasAny"),
  hasall: membership("hasAll"),
};
