import {
  clockSql,
  dateDifferenceSql,
  dateSql,
  dateTime64Sql,
  dateTimeSql,
  intervalSql,
  isDifferenceUnit,
  secondsSql,
  startSql,
  weekSql,
} from "../postgres/dates.ts";
import { formatDateTime } from "../postgres/format-date-time.ts";
import { timestampSql } from "../postgres/writer.ts";
import { invalidQuery } from "../problem.ts";
import { interval } from "../resolve/arithmetic.ts";
import { inZone } from "../resolve/conversion.ts";
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
  withZone,
  zoneOf,
} from "../resolve/types.ts";
import { readZone } from "../resolve/zones.ts";
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

/** Removes the time zone argument at an index. `zone` is `undefined` if the argument is missing or names UTC. */
function takeZone(called: Called, index: number): { readonly called: Called; readonly zone: Zone | undefined } {
  if (called.args.length <= index) return { called, zone: undefined };
  const zone = readZone(literalText(called.args[index], called), called.args[index]?.span ?? called.span);
  return { called: { ...called, args: called.args.toSpliced(index, 1) }, zone: { name: zone } };
}

interface Zone {
  /** Name of the time zone; `undefined` for UTC. */
  readonly name: string | undefined;
}

/** Removes the time zone argument at an index and converts the first argument, a DateTime, to the zone. */
function firstInZone(written: Called, index: number): Called {
  const { called, zone } = takeZone(written, index);
  const [operand, ...more] = called.args;
  if (zone === undefined || operand === undefined) return called;
  if (zone.name !== undefined && !TIME.is(operand.type))
    throw invalidQuery(`a time zone needs a DateTime, not ${typeText(operand.type)}`, operand.span);
  return { ...called, args: [inZone(operand, operand.type.name === "Date" ? undefined : zone.name), ...more] };
}

/** Converts a time to another zone. Internal: queries cannot call this function by its name. */
export const TO_TIME_ZONE: ScalarFunction = {
  postgres: ({ arguments: [time] }, writer) => writer.value(time as ResolvedExpression),
};

const operandOf = ({ args: [operand] }: Called): ResolvedExpression => operand as ResolvedExpression;

/** Functions that return the time of the query. The clock is read once per query. */
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
function timestamp(name: string, unzoned: Type, called: Called, zone?: Zone): ResolvedExpression {
  const written = operandOf(called);
  const operand = zone ? inZone(written, zone.name) : written;
  const type = withZone(unzoned, zone ? zone.name : zoneOf(operand.type));
  if (isStringLiteral(operand))
    return readAs(type, /^\d{5,10}$/.test(operand.value) ? fromSeconds(operand.value) : operand.value, operand.span);
  if (!isDate(operand.type) && !isNumeric(operand.type) && operand.type.name !== "Nothing") {
    throw invalidQuery(
      `${called.name} takes a date, a number or a string literal, not ${typeText(operand.type)}`,
      operand.span,
    );
  }
  return isDate(operand.type)
    ? call(name, [operand], type, called.span)
    : inZone(call(name, [operand], unzoned, called.span), zone?.name);
}

const fromSeconds = (digits: string): string => new Date(Number(digits) * 1000).toISOString();

function checkedCall(called: Called): Called {
  checked(called, [ANY]);
  return called;
}

const toTimestamp = (name: "toDate" | "toDateTime", type: Type, docs: Docs, postgres: PostgresSql): ScalarFunction => ({
  docs,
  resolve: (written) => {
    if (name === "toDate") return timestamp(name, type, checkedCall(firstInZone(written, 1)));
    const { called, zone } = takeZone(written, 1);
    return timestamp(name, type, checkedCall(called), zone);
  },
  postgres,
});

/** Start of a unit: a DateTime up to `day`, a Date from `month` upward. */
function startOf(unit: "minute" | "hour" | "day" | "month" | "quarter" | "year"): ScalarFunction {
  const name = `toStartOf${unit[0]?.toUpperCase()}${unit.slice(1)}`;
  const kind: ArgumentKind = unit === "minute" || unit === "hour" ? TIME : DATE_OR_TIME;
  const type = kind === TIME || unit === "day" ? DATE_TIME : DATE;
  return {
    docs: [`${name}(t, 'Europe/Berlin')`, `The start of the ${unit}, as a ${type.name}.`],
    resolve: (written) => {
      const called = unit === "day" ? dayInZone(written) : firstInZone(written, 1);
      const [operand] = checked(called, [kind]) as [ResolvedExpression];
      return call(name, [operand], withZone(type, zoneOf(operand.type)), called.span);
    },
    postgres: startSql(unit),
  };
}

/** Converts the first argument like `firstInZone`, but also accepts a Date, which means midnight in the zone. */
function dayInZone(written: Called): Called {
  const { called, zone } = takeZone(written, 1);
  const [operand, ...more] = called.args;
  return zone && operand?.type.name === "Date"
    ? { ...called, args: [inZone(operand, zone.name), ...more] }
    : firstInZone(written, 1);
}

/** Function that returns a part of a date or time. `field` is the name of the part in Postgres. */
const part = (name: string, kind: ArgumentKind, field: string, meaning: string): ScalarFunction => ({
  docs: [`${name}(t, 'Europe/Berlin')`, meaning],
  takes: [kind],
  resolve: (written) => {
    const called = firstInZone(written, 1);
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
  week: (written) => {
    const called = firstInZone(written, 1);
    return startOfWeek(checked(called, [DATE_OR_TIME])[0] as ResolvedExpression, true, called.span);
  },
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
    ["toDateTime(x, 'Europe/Berlin')", "Time of a text such as '2026-03-01 10:00:00', or of Unix seconds."],
    dateTimeSql,
  ),
  toDateTime64: {
    docs: ["toDateTime64(x, 3, 'Europe/Berlin')", "As toDateTime, with fractions of a second."],
    resolve: (written) => {
      const { called, zone } = takeZone(written, 2);
      const { name, args, span } = called;
      if (args.length !== 2) throw invalidQuery(`${name} takes 2 arguments, not ${args.length}`, span);
      return timestamp("toDateTime64", dateTime64(scaleOf(called, 1)), called, zone);
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
      const called = firstInZone(written, 2);
      const args = checked(called, [DATE_OR_TIME, INTEGER], 1);
      if (args.length > 1 && literalInteger(args[1], called) !== 0n)
        throw invalidQuery("toDayOfWeek is supported with mode 0", called.span);
      return call("toDayOfWeek", args.slice(0, 1), UINT8, called.span);
    },
  },
  dateDiff: {
    docs: [
      "dateDiff('day', a, b, 'Europe/Berlin')",
      "Number of boundaries of the unit, from second to year, between two times.",
    ],
    resolve: (written) => {
      const { called, zone } = takeZone(written, 3);
      const args = checked(called, [TEXT, DATE_OR_TIME, DATE_OR_TIME]);
      const times = zone ? args.slice(1).map((time) => inZone(time, zone.name)) : args.slice(1);
      if (new Set(times.filter(({ type }) => isDate(type)).map(({ type }) => zoneOf(type))).size > 1)
        throw invalidQuery("dateDiff of times in several zones needs a zone as its last argument", called.span);
      const unit = literalText(args[0], called).toLowerCase().replace(/s$/, "");
      if (!isDifferenceUnit(unit)) throw invalidQuery(`'${unit}' is not a unit of dateDiff`, called.span);
      return call("dateDiff", [valueLiteral(unit, STRING, called.span), ...times], INT64, called.span);
    },
    postgres: dateDifferenceSql,
    // Emits the unit as SQL text, because ClickHouse does not accept a parameter there.
    clickhouse: ({ arguments: [unit] }, [, ...times]) =>
      `dateDiff('${unit?.kind === "literal" ? unit.value : ""}', ${times.join(", ")})`,
  },
  ...STARTS,
  toStartOfWeek: {
    docs: ["toStartOfWeek(t, 1, 'Europe/Berlin')", "Start of the week: Monday with 1, otherwise Sunday."],
    resolve: (written) => {
      const called = firstInZone(written, 2);
      checked(called, [DATE_OR_TIME, INTEGER], 1);
      const mode = called.args.length > 1 ? literalInteger(called.args[1], called) : 0n;
      return startOfWeek(operandOf(called), mode % 2n !== 0n, called.span);
    },
    postgres: weekSql,
  },
  date_trunc: {
    docs: ["date_trunc('hour', t, 'Europe/Berlin')", "Start of the named unit; weeks begin on Monday."],
    resolve: (called) => {
      const unit = literalText(called.args[0], called).toLowerCase();
      const truncate = Object.hasOwn(TRUNCATED, unit) ? TRUNCATED[unit] : undefined;
      if (!truncate) throw invalidQuery(`'${unit}' is not one of ${Object.keys(TRUNCATED).join(", ")}`, called.span);
      return truncate({ ...called, args: called.args.slice(1) });
    },
  },
  formatDateTime: {
    docs: ["formatDateTime(t, '%Y-%m-%d', 'Europe/Berlin')", "Formatted time; %H:%i are hours and minutes."],
    resolve: (written) => {
      const called = firstInZone(written, 2);
      const args = checked(called, [DATE_OR_TIME, TEXT]);
      literalText(args[1], called);
      return call("formatDateTime", args, STRING, called.span);
    },
    postgres: formatDateTime,
  },
  fromUnixTimestamp64Milli: {
    docs: [
      "fromUnixTimestamp64Milli(ms, 'Europe/Berlin')",
      "Time of Unix milliseconds, such as `time` of a table of events.",
    ],
    takes: [INTEGER],
    resolve: (written) => {
      const { called, zone } = takeZone(written, 1);
      const time = call("fromUnixTimestamp64Milli", checked(called, [INTEGER]), dateTime64(3), called.span);
      return inZone(time, zone?.name);
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
      const { called, zone } = takeZone(written, 1);
      if (zone?.name !== undefined) throw invalidQuery("toUnixTimestamp takes no time zone", called.span);
      return call("toUnixTimestamp", checked(called, [DATE_OR_TIME]), UINT32, called.span);
    },
    postgres: ({ arguments: [operand] }, writer) => secondsSql(timestampSql(operand as ResolvedExpression, writer)),
  },
  ...Object.fromEntries([...FINE_UNITS, ...DAY_UNITS].map(toInterval)),
};

/** Resolved form of INTERVAL. Its only argument is the amount; the type contains the unit. */
export const TO_INTERVAL: ScalarFunction = {
  postgres: intervalSql,
  clickhouse: ({ type }, args) =>
    `toInterval${type.name === "Interval" ? `${type.unit[0]?.toUpperCase()}${type.unit.slice(1)}` : ""}(${args.join()})`,
};
