import { invalidQuery } from "../problem.ts";
import type { FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { INT64, type IntervalType, isDate, type Type, zoneOf } from "../resolve/types.ts";
import type { IntervalUnit } from "../tree.ts";
import { localSql, timestampSql, type Writer } from "./writer.ts";

type Write = (call: FunctionCall, writer: Writer) => string;

const first = ({ arguments: [operand] }: FunctionCall): ResolvedExpression => operand as ResolvedExpression;

/** Emits SQL for `now`, `now64` or `today`, depending on the type of the call. */
export const clockSql: Write = (call, { parameters, nowMs }) => {
  const { type } = call;
  const digits = type.name === "DateTime64" ? Math.min(scaled(type, call).scale, 3) : 0;
  const text = new Date(Math.floor(nowMs / 10 ** (3 - digits)) * 10 ** (3 - digits)).toISOString().replace("T", " ");
  const length = { Date: 10, DateTime: 19 }[type.name as string] ?? 23;
  return parameters.timestamp(text.slice(0, length), type);
};

/** Limits the number of fraction digits to 6, because Postgres has a precision of microseconds. */
function scaled(type: Type, call: FunctionCall): { readonly scale: number } {
  if (type.name !== "DateTime64") throw new TypeError(`${type.name} has no scale`);
  if (type.scale > 6) throw invalidQuery("fractions of a second are supported up to 6 digits", call.span);
  return type;
}

export const dateSql: Write = (call, writer) => {
  const operand = first(call);
  if (isDate(operand.type) || operand.type.name === "Nothing")
    return localDateSql(operand, `${localSql(operand, writer)}::date`);
  return `analytics.date_of(${integerOf(operand, writer)})`;
};

/** Truncates a number to an integer. */
const integerOf = (operand: ResolvedExpression, writer: Writer): string =>
  operand.type.name === "Float64" ? `analytics.to_int64(${writer.value(operand)})` : writer.as(operand, INT64);

export const dateTimeSql: Write = (call, writer) => {
  const operand = first(call);
  if (operand.type.name === "DateTime64") return `date_trunc('second', ${writer.value(operand)})`;
  const zone = zoneOf(call.type);
  if (operand.type.name === "Date" && zone !== undefined)
    return `analytics.start_of_date(${writer.value(operand)}, ${writer.parameters.text(zone)})`;
  if (isDate(operand.type) || operand.type.name === "Nothing") return timestampSql(operand, writer);
  return `analytics.date_time_of(${integerOf(operand, writer)})`;
};

export const dateTime64Sql: Write = (call, writer) => {
  const operand = first(call);
  const { scale } = scaled(call.type, call);
  const value = writer.value(operand);
  switch (operand.type.name) {
    case "Date":
    case "DateTime":
    case "Nothing":
      return timestampSql(operand, writer);
    case "DateTime64":
      return operand.type.scale <= scale ? value : truncated(value, scale, call);
    case "Float64":
      if (scale !== 3) throw invalidQuery("a float becomes a DateTime64 of 3 digits alone", call.span);
      return `analytics.date_time64_of(analytics.to_int64(${value} * 1000))`;
    default:
      return `analytics.date_time64_of(${writer.as(operand, INT64)} * 1000)`;
  }
};

function truncated(value: string, scale: number, call: FunctionCall): string {
  if (scale === 0) return `date_trunc('second', ${value})`;
  if (scale === 3) return `date_trunc('milliseconds', ${value})`;
  throw invalidQuery("fewer digits of a second are supported as 0 or 3", call.span);
}

/**
 * Emits a local date. A date before the first representable day, such as the date of an empty `min` in an American time zone, becomes that
 * day.
 */
const localDateSql = ({ type }: ResolvedExpression, date: string): string =>
  zoneOf(type) === undefined || type.nullable ? date : `greatest(${date}, date '1970-01-01')`;

/** Emits the start of a unit: a Date from `month` upward, otherwise a time. */
export const startSql =
  (unit: string): Write =>
  (call, writer) => {
    const operand = first(call);
    if (call.type.name === "Date")
      return localDateSql(operand, `date_trunc('${unit}', ${localSql(operand, writer)})::date`);
    const [time, zone] = [timestampSql(operand, writer), zoneOf(call.type)];
    // Minutes begin at the same instant in all time zones.
    if (zone === undefined || unit === "minute") return `date_trunc('${unit}', ${time})`;
    return `analytics.start_of_${unit}(${time}, ${writer.parameters.text(zone)})`;
  };

/** Emits the start of a week. In Postgres, weeks begin on Monday. A result before 1970-01-01 becomes that day. */
export const weekSql: Write = (call, writer) => {
  const [operand, mode] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
  const value = localSql(operand, writer);
  const fromMonday = mode.kind === "literal" && mode.value === 1n;
  const start = fromMonday
    ? `date_trunc('week', ${value})::date`
    : `(date_trunc('week', ${value} + interval '1 day') - interval '1 day')::date`;
  return operand.type.nullable ? start : `greatest(${start}, date '1970-01-01')`;
};

/** Emits the integer seconds from 1970 to a timestamp. */
export const secondsSql = (timestamp: string): string => `floor(extract(epoch from ${timestamp}))::bigint`;

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

export const intervalSql: Write = (call, writer) => {
  const step = STEPS[(call.type as IntervalType).unit];
  if (!step) throw invalidQuery("nanoseconds are not supported", call.span);
  return `(${writer.as(first(call), INT64)} * interval '${step.times} ${step.unit}')`;
};

/**
 * Emits how many units have passed since a fixed start. `timestamp` is in UTC for units up to the hour, and a local time for longer units.
 * Weeks begin on Monday, so the start for weeks is not 1970-01-01, which was a Thursday.
 */
const NUMBERS: Readonly<Record<string, (timestamp: string, zone: string | undefined) => string>> = {
  second: (t) => `floor(extract(epoch from ${t}))::bigint`,
  minute: (t) => `floor(extract(epoch from ${t}) / 60)::bigint`,
  hour: (t, zone) => `floor(extract(epoch from ${zone ? `analytics.whole_hours(${t}, ${zone})` : t}) / 3600)::bigint`,
  day: (t) => `(${t}::date - date '1970-01-01')::bigint`,
  week: (t) => `floor((${t}::date - date '1969-12-29') / 7.0)::bigint`,
  month: (t) => `(extract(year from ${t}) * 12 + extract(month from ${t}))::bigint`,
  quarter: (t) => `(extract(year from ${t}) * 4 + extract(quarter from ${t}))::bigint`,
  year: (t) => `extract(year from ${t})::bigint`,
};

export const isDifferenceUnit = (unit: string): boolean => Object.hasOwn(NUMBERS, unit);

export const dateDifferenceSql: Write = (call, writer) => {
  const [unit, from, to] = call.arguments as readonly [ResolvedExpression, ResolvedExpression, ResolvedExpression];
  const name = unit.kind === "literal" ? String(unit.value) : "";
  const number = NUMBERS[name];
  if (!number) throw new TypeError("the unit of dateDiff is checked before");
  const isInstant = ["second", "minute", "hour"].includes(name);
  const numberOf = (time: ResolvedExpression) => {
    const zone = zoneOf(time.type);
    return number((isInstant ? timestampSql : localSql)(time, writer), zone && writer.parameters.text(zone));
  };
  return `(${numberOf(to)} - ${numberOf(from)})`;
};
