import type { FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { INT64, type IntervalType, isDate, isInteger, type Type } from "../resolve/types.ts";
import type { IntervalUnit } from "../tree.ts";
import { unsupported } from "./unsupported.ts";
import type { Writer } from "./writer.ts";

type Write = (call: FunctionCall, writer: Writer) => string;

const first = ({ arguments: [operand] }: FunctionCall): ResolvedExpression => operand as ResolvedExpression;

const iso = (ms: number): string => new Date(ms).toISOString();

export const now: Write = (call, { parameters, nowMs }) =>
  parameters.timestamp(iso(nowMs).slice(0, 19).replace("T", " "), call.type);

export const now64: Write = (call, { parameters, nowMs }) => {
  const { scale } = scaled(call.type, call);
  return parameters.timestamp(
    iso(Math.floor(nowMs / 10 ** (3 - Math.min(scale, 3))) * 10 ** (3 - Math.min(scale, 3)))
      .replace("T", " ")
      .replace("Z", ""),
    call.type,
  );
};

export const today: Write = (call, { parameters, nowMs }) => parameters.timestamp(iso(nowMs).slice(0, 10), call.type);

/** Limits the scale to microseconds, the precision of Postgres. */
function scaled(type: Type, call: FunctionCall): { readonly scale: number } {
  if (type.name !== "DateTime64") throw new TypeError(`${type.name} has no scale`);
  if (type.scale > 6) throw unsupported("fractions of a second are supported up to 6 digits", call.span);
  return type;
}

export const toDate: Write = (call, writer) => {
  const operand = first(call);
  const value = writer.value(operand);
  if (operand.type.name === "Date" || operand.type.name === "Nothing") return `${value}::date`;
  if (isDate(operand.type)) return `${value}::date`;
  return `analytics.date_of(${wholeSql(operand, writer)})`;
};

/** Truncates a number to an integer. */
const wholeSql = (operand: ResolvedExpression, writer: Writer): string =>
  operand.type.name === "Float64" ? `analytics.to_int64(${writer.value(operand)})` : writer.as(operand, INT64);

export const toDateTime: Write = (call, writer) => {
  const operand = first(call);
  const value = writer.value(operand);
  switch (operand.type.name) {
    case "DateTime":
      return value;
    case "Date":
    case "Nothing":
      return `${value}::timestamp`;
    case "DateTime64":
      return `date_trunc('second', ${value})`;
    default:
      return `analytics.date_time_of(${wholeSql(operand, writer)})`;
  }
};

export const toDateTime64: Write = (call, writer) => {
  const operand = first(call);
  const { scale } = scaled(call.type, call);
  const value = writer.value(operand);
  switch (operand.type.name) {
    case "DateTime":
      return value;
    case "Date":
    case "Nothing":
      return `${value}::timestamp`;
    case "DateTime64":
      return operand.type.scale <= scale ? value : truncated(value, scale, call);
    case "Float64":
      if (scale !== 3) throw unsupported("a float becomes a DateTime64 of 3 digits alone", call.span);
      return `analytics.date_time64_of(analytics.to_int64(${value} * 1000))`;
    default:
      return `analytics.date_time64_of(${writer.as(operand, INT64)} * 1000)`;
  }
};

function truncated(value: string, scale: number, call: FunctionCall): string {
  if (scale === 0) return `date_trunc('second', ${value})`;
  if (scale === 3) return `date_trunc('milliseconds', ${value})`;
  throw unsupported("fewer digits of a second are supported as 0 or 3", call.span);
}

/** Emits the start of the minute, hour or day as a DateTime. */
export const startOf =
  (unit: "minute" | "hour" | "day"): Write =>
  (call, writer) =>
    `date_trunc('${unit}', ${timestampSql(first(call), writer)})`;

/** Converts to a timestamp first: `date_trunc` of a date would return a value in the session's time zone. */
const timestampSql = (operand: ResolvedExpression, writer: Writer): string =>
  operand.type.name === "Date" || operand.type.name === "Nothing"
    ? `${writer.value(operand)}::timestamp`
    : writer.value(operand);

export const startOfDate =
  (unit: "month" | "quarter" | "year"): Write =>
  (call, writer) =>
    `date_trunc('${unit}', ${timestampSql(first(call), writer)})::date`;

/** Postgres weeks begin on Monday. The first day is 1970-01-01. */
export const startOfWeek: Write = (call, writer) => {
  const [operand, mode] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
  const value = timestampSql(operand, writer);
  const fromMonday = mode.kind === "literal" && mode.value === 1n;
  const start = fromMonday
    ? `date_trunc('week', ${value})::date`
    : `(date_trunc('week', ${value} + interval '1 day') - interval '1 day')::date`;
  return operand.type.nullable ? start : `greatest(${start}, date '1970-01-01')`;
};

export const fromUnixTimestamp64Milli: Write = (call, writer) =>
  `analytics.date_time64_of(${writer.as(first(call), INT64)})`;

export const toUnixTimestamp64Milli: Write = (call, writer) =>
  `floor(extract(epoch from ${writer.value(first(call))}) * 1000)::bigint`;

export const toUnixTimestamp: Write = (call, writer) => secondsSql(first(call), writer);

/** Emits integer seconds since 1970. */
export const secondsSql = (operand: ResolvedExpression, writer: Writer): string =>
  `floor(extract(epoch from ${timestampSql(operand, writer)}))::bigint`;

/** Postgres interval unit and factor for each unit. */
const STEPS: Readonly<Record<IntervalUnit, { readonly times: number; readonly unit: string } | undefined>> = {
  nanosecond: undefined,
  microsecond: { times: 1, unit: "microsecond" },
  millisecond: { times: 1, unit: "millisecond" },
  second: { times: 1, unit: "second" },
  minute: { times: 1, unit: "minute" },
  hour: { times: 1, unit: "hour" },
  day: { times: 1, unit: "day" },
  week: { times: 7, unit: "day" },
  month: { times: 1, unit: "month" },
  quarter: { times: 3, unit: "month" },
  year: { times: 12, unit: "month" },
};

export const toInterval: Write = (call, writer) => {
  const step = STEPS[(call.type as IntervalType).unit];
  if (!step) throw unsupported("nanoseconds are not supported", call.span);
  return `(${writer.as(first(call), INT64)} * interval '${step.times} ${step.unit}')`;
};

/** Adds an interval, or a number of days or seconds, to a date. */
export const shifted =
  (sign: "+" | "-"): Write =>
  (call, writer) => {
    const [left, right] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
    const [date, by] = isDate(left.type) ? [left, right] : [right, left];
    const there = `${timestampSql(date, writer)} ${sign} ${distanceSql(date, by, writer)}`;
    const moved = byMonths(by) && !call.type.nullable ? `greatest(${there}, timestamp '1970-01-01')` : there;
    if (call.type.name === "Date") return `analytics.wrapped_date((${moved})::date)`;
    return call.type.name === "DateTime" ? `analytics.wrapped_date_time(${moved})` : `(${moved})`;
  };

/** Months stop at the first representable day; other units wrap. */
const byMonths = ({ type }: ResolvedExpression): boolean =>
  type.name === "Interval" && ["month", "quarter", "year"].includes(type.unit);

function distanceSql(date: ResolvedExpression, by: ResolvedExpression, writer: Writer): string {
  if (by.type.name === "Interval") return writer.value(by);
  return `${writer.as(by, INT64)} * interval '1 ${date.type.name === "Date" ? "day" : "second"}'`;
}

/** Difference in days between dates, or in seconds between date-times. */
export const difference: Write = (call, writer) => {
  const [left, right] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
  const [a, b] = [writer.value(left), writer.value(right)];
  if (left.type.name === "Date") return `(${a} - ${b})::bigint`;
  return `extract(epoch from ${a} - ${b})::bigint`;
};

export const isShift = (call: FunctionCall): boolean =>
  isDate(call.type) && call.arguments.some(({ type }) => isDate(type) || type.name === "Interval");

export const isDifference = (call: FunctionCall): boolean =>
  isInteger(call.type) && call.arguments.every(({ type }) => isDate(type));
