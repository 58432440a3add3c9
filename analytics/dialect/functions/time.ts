import {
  clockSql,
  dateDifferenceSql,
  dateSql,
  dateTime64Sql,
  dateTimeSql,
  intervalSql,
  isDifferenceUnit,
  secondsSql,
  weekSql,
} from "../postgres/dates.ts";
import { formatDateTime } from "../postgres/format-date-time.ts";
import { timestampSql } from "../postgres/writer.ts";
import { invalidQuery } from "../problem.ts";
import { interval } from "../resolve/arithmetic.ts";
import { isStringLiteral, readAs, valueLiteral } from "../resolve/literals.ts";
import { call, type ResolvedExpression } from "../resolve/resolved.ts";
import {
  clickhouseCast,
  DATE,
  DATE_TIME,
  dateTime64,
  INT64,
  isDate,
  isNumeric,
  STRING,
  type Type,
  typeText,
  UINT8,
  UINT32,
} from "../resolve/types.ts";
import type { IntervalUnit, Span } from "../tree.ts";
import {
  ANY,
  type ArgumentKind,
  type Called,
  checked,
  DATE_OR_TIME,
  type Docs,
  INTEGER,
  literalInteger,
  literalText,
  type PostgresSql,
  type Resolve,
  type ScalarFunction,
  TEXT,
  TIME,
  TIME64,
} from "./entry.ts";

const UTC = /^(utc|etc\/utc)$/i;

/** Removes the time zone argument at an index, which must be UTC, because all times of a result are in UTC. */
function withoutZone(called: Called, index: number): Called {
  if (called.args.length <= index) return called;
  const zone = literalText(called.args[index], called);
  if (!UTC.test(zone))
    throw invalidQuery(`${called.name} is supported in UTC alone; toDate(t, '${zone}') is the local date`, called.span);
  return { ...called, args: called.args.toSpliced(index, 1) };
}

/**
 * Converts the first argument to the local time of the zone at an index, and removes the zone. Only functions whose result has no time of
 * day in ClickHouse may use it: a result that is a time would keep the zone in its type.
 */
function inZone(called: Called, index: number): Called {
  const [operand, ...more] = called.args;
  if (called.args.length <= index || !operand) return called;
  const zone = literalText(called.args[index], called);
  const args = [operand, ...more.toSpliced(index - 1, 1)];
  if (UTC.test(zone)) return { ...called, args };
  if (!isZone(zone)) throw invalidQuery(`'${zone}' is not a time zone, such as 'Europe/Berlin'`, called.span);
  if (!TIME.is(operand.type))
    throw invalidQuery(`a time zone needs a DateTime, not ${typeText(operand.type)}`, operand.span);
  const local = call("toTimeZone", [operand, valueLiteral(zone, STRING, called.span)], operand.type, called.span);
  return { ...called, args: [local, ...args.slice(1)] };
}

/** ClickHouse compares names with regard to case. */
function isZone(name: string): boolean {
  try {
    return (
      /^[A-Z][\w+-]*(\/[A-Z][\w+-]*)+$/.test(name) && new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined
    );
  } catch {
    return false;
  }
}

/** Local time of the zone, as a time in UTC. Queries cannot call this function by its name. */
export const TO_TIME_ZONE: ScalarFunction = {
  takes: [TIME, TEXT],
  sql: (t, zone) => `(${t} at time zone 'UTC' at time zone ${zone})`,
};

const operandOf = ({ args: [operand] }: Called): ResolvedExpression => operand as ResolvedExpression;

/** The clock is read once per query. */
const clock = (type: Type, docs: Docs): ScalarFunction => ({
  docs,
  takes: [],
  returns: type,
  postgres: clockSql,
  clickhouse: ({ type: own }, _, nowMs) => clickhouseClock(nowMs, own),
});

const clickhouseClock = (nowMs: number, type: Type): string =>
  clickhouseCast(`fromUnixTimestamp64Milli(toInt64(${nowMs}), 'UTC')`, type);

const scaleOf = (called: Called, index: number): number => {
  const scale = called.args.length > index ? literalInteger(called.args[index], called) : 3n;
  if (scale < 0n || scale > 9n) throw invalidQuery(`${called.name} takes 0 to 9 digits`, called.span);
  return Number(scale);
};

/** Resolves `toDate`, `toDateTime` and `toDateTime64`. String literals are parsed during resolution. */
function timestamp(name: string, type: Type, called: Called): ResolvedExpression {
  const operand = operandOf(called);
  if (isStringLiteral(operand))
    return readAs(type, /^\d{5,10}$/.test(operand.value) ? fromSeconds(operand.value) : operand.value, operand.span);
  if (!isDate(operand.type) && !isNumeric(operand.type) && operand.type.name !== "Nothing") {
    throw invalidQuery(
      `${called.name} takes a date, a number or a string literal, not ${typeText(operand.type)}`,
      operand.span,
    );
  }
  return call(name, [operand], type, called.span);
}

const fromSeconds = (digits: string): string => new Date(Number(digits) * 1000).toISOString();

const toTimestamp = (name: "toDate" | "toDateTime", type: Type, docs: Docs, postgres: PostgresSql): ScalarFunction => ({
  docs,
  resolve: (written) => {
    const called = name === "toDate" ? inZone(written, 1) : withoutZone(written, 1);
    checked(called, [ANY]);
    return timestamp(name, type, called);
  },
  postgres,
});

/** Start of a unit, as a DateTime up to `day` and as a Date from `month` upward. */
function startOf(unit: "minute" | "hour" | "day" | "month" | "quarter" | "year"): ScalarFunction {
  const name = `toStartOf${unit[0]?.toUpperCase()}${unit.slice(1)}`;
  const kind: ArgumentKind = unit === "minute" || unit === "hour" ? TIME : DATE_OR_TIME;
  const type = kind === TIME || unit === "day" ? DATE_TIME : DATE;
  return {
    docs: [
      type === DATE ? `${name}(t, 'Europe/Berlin')` : `${name}(t)`,
      `The start of the ${unit}${type === DATE ? "" : " in UTC"}, as a ${type.name}.`,
    ],
    takes: [kind],
    resolve: (written) => {
      const called = type === DATE ? inZone(written, 1) : withoutZone(written, 1);
      return call(name, checked(called, [kind]), type, called.span);
    },
    sql: (t) => `date_trunc('${unit}', ${t})${type === DATE ? "::date" : ""}`,
  };
}

/** Part of a date or time that Postgres extracts by this name. */
const part = (name: string, kind: ArgumentKind, field: string, meaning: string): ScalarFunction => ({
  docs: [`${name}(t, 'Europe/Berlin')`, meaning],
  takes: [kind],
  resolve: (written) => {
    const called = inZone(written, 1);
    return call(name, checked(called, [kind]), UINT8, called.span);
  },
  sql: (t) => `extract(${field} from ${t})::bigint`,
});

const STARTS = {
  toStartOfMinute: startOf("minute"),
  toStartOfHour: startOf("hour"),
  toStartOfDay: startOf("day"),
  toStartOfMonth: startOf("month"),
  toStartOfQuarter: startOf("quarter"),
  toStartOfYear: startOf("year"),
};

const startOfWeek = (operand: ResolvedExpression, fromMonday: boolean, span: Span): ResolvedExpression =>
  call("toStartOfWeek", [operand, valueLiteral(fromMonday ? 1n : 0n, UINT8, span)], DATE, span);

const TRUNCATED: Readonly<Record<string, Resolve>> = {
  minute: STARTS.toStartOfMinute.resolve as Resolve,
  hour: STARTS.toStartOfHour.resolve as Resolve,
  day: STARTS.toStartOfDay.resolve as Resolve,
  week: (called) => startOfWeek(checked(called, [DATE_OR_TIME])[0] as ResolvedExpression, true, called.span),
  month: STARTS.toStartOfMonth.resolve as Resolve,
  quarter: STARTS.toStartOfQuarter.resolve as Resolve,
  year: STARTS.toStartOfYear.resolve as Resolve,
};

function toInterval(unit: IntervalUnit): readonly [string, ScalarFunction] {
  const name = `toInterval${unit[0]?.toUpperCase()}${unit.slice(1)}`;
  return [
    name,
    {
      docs: [`${name}(n)`, `n ${unit}s, to add to or subtract from a time.`],
      resolve: (called) => interval(checked(called, [ANY])[0] as ResolvedExpression, unit, called.span),
    },
  ];
}

const FINE_UNITS = ["nanosecond", "microsecond", "millisecond", "second", "minute", "hour"] as const;
const DAY_UNITS = ["day", "week", "month", "quarter", "year"] as const;

export const TIME_FUNCTIONS: Readonly<Record<string, ScalarFunction>> = {
  now: clock(DATE_TIME, ["now()", "Time of the query, in seconds."]),
  now64: {
    docs: ["now64(3)", "Time of the query, with fractions of a second."],
    resolve: (called) => {
      checked(called, [INTEGER], 0);
      return call("now64", [], dateTime64(scaleOf(called, 0)), called.span);
    },
    postgres: clockSql,
    clickhouse: ({ type }, _, nowMs) => clickhouseClock(nowMs, type),
  },
  today: clock(DATE, ["today()", "Date of the query, UTC."]),
  toDate: toTimestamp("toDate", DATE, ["toDate(x, 'Europe/Berlin')", "Date of a time, a text or a number."], dateSql),
  toDateTime: toTimestamp(
    "toDateTime",
    DATE_TIME,
    ["toDateTime(x)", "Time of a text such as '2026-03-01 10:00:00', or of Unix seconds."],
    dateTimeSql,
  ),
  toDateTime64: {
    docs: ["toDateTime64(x, 3)", "As toDateTime, with fractions of a second."],
    resolve: (written) => {
      const called = withoutZone(written, 2);
      const { name, args, span } = called;
      if (args.length !== 2) throw invalidQuery(`${name} takes 2 arguments, not ${args.length}`, span);
      return timestamp("toDateTime64", dateTime64(scaleOf(called, 1)), called);
    },
    postgres: dateTime64Sql,
    clickhouse: ({ type }, [operand]) => `toDateTime64(${operand}, ${type.name === "DateTime64" ? type.scale : 0})`,
  },
  toHour: part("toHour", TIME, "hour", "Hour of a time, 0 to 23."),
  toMonth: part("toMonth", DATE_OR_TIME, "month", "Month, 1 to 12."),
  toDayOfWeek: {
    ...part("toDayOfWeek", DATE_OR_TIME, "isodow", "Day of the week: 1 is Monday, 7 is Sunday."),
    docs: ["toDayOfWeek(t, 0, 'Europe/Berlin')", "Day of the week: 1 is Monday, 7 is Sunday. The mode is 0."],
    resolve: (written) => {
      const called = inZone(written, 2);
      const args = checked(called, [DATE_OR_TIME, INTEGER], 1);
      if (args.length > 1 && literalInteger(args[1], called) !== 0n)
        throw invalidQuery("toDayOfWeek is supported with mode 0", called.span);
      return call("toDayOfWeek", args.slice(0, 1), UINT8, called.span);
    },
  },
  dateDiff: {
    docs: ["dateDiff('day', a, b)", "Number of boundaries of the unit, from second to year, between two times, UTC."],
    resolve: (written) => {
      const called = withoutZone(written, 3);
      const args = checked(called, [TEXT, DATE_OR_TIME, DATE_OR_TIME]);
      const unit = literalText(args[0], called).toLowerCase().replace(/s$/, "");
      if (!isDifferenceUnit(unit)) throw invalidQuery(`'${unit}' is not a unit of dateDiff`, called.span);
      return call("dateDiff", [valueLiteral(unit, STRING, called.span), ...args.slice(1)], INT64, called.span);
    },
    postgres: dateDifferenceSql,
    // ClickHouse takes no parameter as the unit.
    clickhouse: ({ arguments: [unit] }, [, ...times]) =>
      `dateDiff('${unit?.kind === "literal" ? unit.value : ""}', ${times.join(", ")})`,
  },
  ...STARTS,
  toStartOfWeek: {
    docs: ["toStartOfWeek(t, 1, 'Europe/Berlin')", "Start of the week: Monday with 1, otherwise Sunday."],
    resolve: (written) => {
      const called = inZone(written, 2);
      checked(called, [DATE_OR_TIME, INTEGER], 1);
      const mode = called.args.length > 1 ? literalInteger(called.args[1], called) : 0n;
      return startOfWeek(operandOf(called), mode % 2n !== 0n, called.span);
    },
    postgres: weekSql,
  },
  date_trunc: {
    docs: ["date_trunc('hour', t)", "Start of the named unit; weeks begin on Monday."],
    resolve: (written) => {
      const called = withoutZone(written, 2);
      const unit = literalText(called.args[0], called).toLowerCase();
      const truncate = Object.hasOwn(TRUNCATED, unit) ? TRUNCATED[unit] : undefined;
      if (!truncate) throw invalidQuery(`'${unit}' is not one of ${Object.keys(TRUNCATED).join(", ")}`, called.span);
      return truncate({ ...called, args: called.args.slice(1) });
    },
  },
  formatDateTime: {
    docs: ["formatDateTime(t, '%Y-%m-%d', 'Europe/Berlin')", "Formatted time; %H:%i are hours and minutes."],
    resolve: (written) => {
      const called = inZone(written, 2);
      const args = checked(called, [DATE_OR_TIME, TEXT]);
      literalText(args[1], called);
      return call("formatDateTime", args, STRING, called.span);
    },
    postgres: formatDateTime,
  },
  fromUnixTimestamp64Milli: {
    docs: ["fromUnixTimestamp64Milli(ms)", "Time of Unix milliseconds, such as `time` of a table of events."],
    takes: [INTEGER],
    resolve: (written) => {
      const called = withoutZone(written, 1);
      return call("fromUnixTimestamp64Milli", checked(called, [INTEGER]), dateTime64(3), called.span);
    },
    sql: (ms) => `analytics.date_time64_of(${ms})`,
  },
  toUnixTimestamp64Milli: {
    docs: ["toUnixTimestamp64Milli(t)", "Unix milliseconds of a time."],
    takes: [TIME64],
    returns: INT64,
    sql: (t) => `floor(extract(epoch from ${t}) * 1000)::bigint`,
  },
  toUnixTimestamp: {
    docs: ["toUnixTimestamp(t)", "Unix seconds of a time."],
    resolve: (written) => {
      const called = withoutZone(written, 1);
      return call("toUnixTimestamp", checked(called, [DATE_OR_TIME]), UINT32, called.span);
    },
    postgres: ({ arguments: [operand] }, writer) => secondsSql(timestampSql(operand as ResolvedExpression, writer)),
  },
  ...Object.fromEntries([...FINE_UNITS, ...DAY_UNITS].map(toInterval)),
};

/** Resolved form of INTERVAL. Has one argument, the amount; the type contains the unit. */
export const TO_INTERVAL: ScalarFunction = {
  postgres: intervalSql,
  clickhouse: ({ type }, args) =>
    `toInterval${type.name === "Interval" ? `${type.unit[0]?.toUpperCase()}${type.unit.slice(1)}` : ""}(${args.join()})`,
};
