import { expect, test } from "vitest";
import { parse } from "../parse.ts";
import type { Expression } from "../tree.ts";
import { bucketOfCall, constantOf } from "./moments.ts";

const NOW_MS = Date.parse("2026-11-22T13:45:10.500Z");
const DAY_MS = 86_400_000;

function expressionOf(text: string): Expression {
  const { query } = parse(`select ${text} from key_verifications_v1`);
  const [column] = query.kind === "select" ? query.columns : [];
  if (column === undefined) throw new Error(`${text} is no column`);
  return column as Expression;
}

/** Formats a timestamp with its latest possible meaning; returns a plain number unchanged. */
function constant(text: string): string | number | undefined {
  const found = constantOf(expressionOf(text), NOW_MS);
  if (found === undefined) return undefined;
  if (found.kind === "count") return found.latest === found.value ? found.value : `${found.value} to ${found.latest}`;
  const timestamp = new Date(found.ms)
    .toISOString()
    .slice(0, found.kind === "date" && found.ms % DAY_MS === 0 ? 10 : -1);
  return `${found.kind} ${timestamp}${found.latest === found.ms ? "" : ` to ${new Date(found.latest).toISOString().slice(0, -1)}`}`;
}

test.each<[string, string | number | undefined]>([
  ["5", 5],
  ["-5", -5],
  ["(5) as a", 5],
  ["'12'", 12],
  ["'-12'", -12],
  ["'12 apples'", undefined],
  ["'a 12'", undefined],
  ["not 5", undefined],
  ["-now()", undefined],
  ["time", undefined],
  ["'2026-10-23'", "date 2026-10-23 to 2026-10-23T23:59:59.999"],
  ["'2026-10-23 12:30'", "dateTime 2026-10-23T12:30:00.000"],
  ["'2026-10-23T12:30:05.250Z'", "dateTime 2026-10-23T12:30:05.250"],
  ["'2026-10-23 12:30:05+02:00'", "dateTime 2026-10-23T10:30:05.000"],
  ["'2026-13-23'", undefined],
  ["'2026-10-23 12:30:05 and more'", undefined],
  // A value truncated to seconds or days may stand for any timestamp within that second or day.
  ["now()", "dateTime 2026-11-22T13:45:10.000 to 2026-11-22T13:45:10.500"],
  ["now64()", "dateTime 2026-11-22T13:45:10.500"],
  ["today()", "date 2026-11-22 to 2026-11-22T13:45:10.500"],
  ["'2026-10-23'::Date", "date 2026-10-23 to 2026-10-23T23:59:59.999"],
  ["'2026-10-23'::DateTime", "dateTime 2026-10-23T00:00:00.000 to 2026-10-23T23:59:59.999"],
  ["'2026-10-23 12:30:05.250'::DateTime64(3)", "dateTime 2026-10-23T12:30:05.250"],
  ["5::Int64", 5],
  ["now()::Int64", undefined],
  ["5::String", undefined],
  ["time::Date", undefined],
  ["toDateTime('2026-10-23 12:30:05', 'UTC')", "dateTime 2026-10-23T12:30:05.000"],
  ["toDateTime('2026-10-23 12:30:05', 'Europe/Berlin')", undefined],
  ["toDateTime(now(), 'Europe/Berlin') - interval 30 day", undefined],
  ["date_trunc('day', now(), 'Europe/Berlin')", undefined],
  ["toDateTime(86400)", "dateTime 1970-01-02T00:00:00.000"],
  ["toDateTime('2026-10-23 12:30:05')", "dateTime 2026-10-23T12:30:05.000"],
  ["toDateTime(time)", undefined],
  ["toDateTime64('2026-10-23 12:30:05.250', 3)", "dateTime 2026-10-23T12:30:05.250"],
  ["toDate(86400)", "date 1970-01-02"],
  ["toDate(time)", undefined],
  ["toInt64('7')", 7],
  ["toInt64(now())", undefined],
  ["fromUnixTimestamp64Milli(86400000)", "dateTime 1970-01-02T00:00:00.000"],
  ["fromUnixTimestamp64Milli(now())", undefined],
  ["toUnixTimestamp64Milli(now64())", NOW_MS],
  ["toUnixTimestamp64Milli(today())", undefined],
  ["toUnixTimestamp64Milli(5)", undefined],
  ["toUnixTimestamp('1970-01-02 00:00:00')", 86_400],
  ["toUnixTimestamp(now64())", `${Math.floor(NOW_MS / 1000)} to ${NOW_MS / 1000}`],
  ["toUnixTimestamp(5)", undefined],
  ["toUnixTimestamp(time)", undefined],
  ["length('a')", undefined],
  ["toStartOfMinute('2026-10-23 12:30:05')", "dateTime 2026-10-23T12:30:00.000 to 2026-10-23T12:30:05.000"],
  ["toStartOfHour('2026-10-23 12:30:05')", "dateTime 2026-10-23T12:00:00.000 to 2026-10-23T12:30:05.000"],
  // A DateTime, too: a plain number added to it counts seconds.
  ["toStartOfDay('2026-10-23 12:30:05') + 1", "dateTime 2026-10-23T00:00:01.000 to 2026-10-23T12:30:06.000"],
  ["date_trunc('day', now64()) + 1", "dateTime 2026-11-22T00:00:01.000 to 2026-11-22T13:45:11.500"],
  ["date_trunc('week', now64()) + 1", "date 2026-11-17 to 2026-11-23T13:45:10.500"],
  ["toStartOfWeek(now64()) + 1", "date 2026-11-23 to 2026-11-23T13:45:10.500"],
  ["toStartOfQuarter(now64()) + 1", "date 2026-10-02 to 2026-11-23T13:45:10.500"],
  ["toStartOfYear(now64()) + 1", "date 2026-01-02 to 2026-11-23T13:45:10.500"],
  ["toStartOfWeek(now64(), 1) + 1", "date 2026-11-17 to 2026-11-23T13:45:10.500"],
  ["toStartOfMonth('2026-10-23 12:30:05')", "date 2026-10-01 to 2026-10-23T12:30:05.000"],
  ["toStartOfHour('2026-10-23 12:30:05') + 1", "dateTime 2026-10-23T12:00:01.000 to 2026-10-23T12:30:06.000"],
  ["toStartOfMinute('2026-10-23 12:30:05') + 1", "dateTime 2026-10-23T12:30:01.000 to 2026-10-23T12:30:06.000"],
  ["toStartOfMonth('2026-10-23 12:30:05') + 1", "date 2026-10-02 to 2026-10-24T12:30:05.000"],
  ["date_trunc('second', now64()) + 1", "dateTime 2026-11-22T13:45:11.000 to 2026-11-22T13:45:11.500"],
  ["toStartOfHour(3700)", "dateTime 1970-01-01T01:00:00.000 to 1970-01-01T01:01:40.000"],
  ["toStartOfHour(time)", undefined],
  ["now64() + 5", "dateTime 2026-11-22T13:45:15.500"],
  ["now64() - 5", "dateTime 2026-11-22T13:45:05.500"],
  ["now64() * 5", undefined],
  ["now64() + now64()", undefined],
  ["5 + now64()", undefined],
  ["time + 5", undefined],
  ["now64() + time", undefined],
  ["now64() + interval 2 hour", "dateTime 2026-11-22T15:45:10.500"],
  ["now64() - interval 2 hour", "dateTime 2026-11-22T11:45:10.500"],
  ["now64() * interval 2 hour", undefined],
  ["5 + interval 2 hour", undefined],
  ["now64() - interval '2' hour", "dateTime 2026-11-22T11:45:10.500"],
  ["now64() - interval time hour", undefined],
  ["now64() - toIntervalMinute(45)", "dateTime 2026-11-22T13:00:10.500"],
  ["now64() - toIntervalMinute(time)", undefined],
  ["'2026-10-23' + interval 1 day", "date 2026-10-24 to 2026-10-24T23:59:59.999"],
  ["'2026-10-23' - interval 1 week + 1", "date 2026-10-17 to 2026-10-17T23:59:59.999"],
  ["'2026-10-23' - interval 1 month + 1", "date 2026-09-24 to 2026-09-24T23:59:59.999"],
  ["'2026-10-23' - interval 1 quarter + 1", "date 2026-07-24 to 2026-07-24T23:59:59.999"],
  ["'2026-10-23' - interval 1 year + 1", "date 2025-10-24 to 2025-10-24T23:59:59.999"],
  ["'2026-10-23' + interval 1 day + 1", "date 2026-10-25 to 2026-10-25T23:59:59.999"],
  // A date plus hours is a DateTime, so plain numbers added to it count seconds.
  ["'2026-10-23' + interval 1 hour + 1", "dateTime 2026-10-23T01:00:01.000 to 2026-10-24T01:00:00.999"],
  ["2 + 3", 5],
  ["2 - 3", -1],
  ["2 * 3", 6],
  ["3 / 2", 1.5],
  ["3 % 2", undefined],
  ["toUnixTimestamp(now64()) + 1", `${Math.floor(NOW_MS / 1000) + 1} to ${NOW_MS / 1000 + 1}`],
  ["toUnixTimestamp(now64()) - 1", `${Math.floor(NOW_MS / 1000) - 1} to ${NOW_MS / 1000 - 1}`],
  ["toUnixTimestamp(now64()) * 2", `${Math.floor(NOW_MS / 1000) * 2} to ${(NOW_MS / 1000) * 2}`],
  ["toUnixTimestamp(now64()) / 2", `${Math.floor(NOW_MS / 1000) / 2} to ${NOW_MS / 1000 / 2}`],
])("analytics query check computes the time constant %s", (text, expected) => {
  expect(constant(text)).toBe(expected);
});

test.each<[string, string | undefined]>([
  ["toDate(time)", "day"],
  ["toStartOfMinute(time)", "minute"],
  ["toStartOfHour(time)", "hour"],
  ["toStartOfDay(time)", "day"],
  ["toStartOfWeek(time)", "week"],
  ["toStartOfWeek(time, 0)", "week"],
  ["toStartOfWeek(time, 1)", "mondayWeek"],
  ["toStartOfWeek(time, 2)", "week"],
  ["toStartOfWeek(time, key_id)", "week"],
  ["toStartOfMonth(time)", "month"],
  ["toStartOfMonth(time, 1)", "month"],
  ["toStartOfQuarter(time)", "quarter"],
  ["toStartOfYear(time)", "year"],
  ["toStartOfHour()", undefined],
  ["date_trunc('second', time)", "second"],
  ["date_trunc('MINUTE', time)", "minute"],
  ["date_trunc('hour', time)", "hour"],
  ["date_trunc('day', time)", "day"],
  ["date_trunc('week', time)", "mondayWeek"],
  ["date_trunc('month', time)", "month"],
  ["date_trunc('quarter', time)", "quarter"],
  ["date_trunc('year', time)", "year"],
  ["date_trunc('mondayWeek', time)", undefined],
  ["date_trunc('hour')", undefined],
  ["date_trunc(key_id, time)", undefined],
  ["length('hour', time)", undefined],
  ["now()", undefined],
])("analytics query check recognizes the time bucket of %s", (text, unit) => {
  const call = expressionOf(text);
  if (call.kind !== "call") throw new Error(`${text} is no call`);
  expect(bucketOfCall(call)?.unit).toBe(unit);
});
