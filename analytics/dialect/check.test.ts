import { describe, expect, test } from "vitest";
import { printQuery } from "../../test/analytics/print-query.ts";
import { readQuery } from "./check.ts";
import { explainProblem, QueryProblem } from "./problem.ts";

const NOW_MS = Date.parse("2026-11-22T13:45:10.500Z");
const KEPT_FROM_MS = NOW_MS - 30 * 86_400_000;
const clock = {
  nowMs: NOW_MS,
  visibleFrom: { raw: KEPT_FROM_MS, minute: KEPT_FROM_MS, hour: KEPT_FROM_MS, day: KEPT_FROM_MS, month: KEPT_FROM_MS },
};

function respond(text: string, of: "verifications" | "ratelimits" = "verifications"): string {
  try {
    return printQuery(readQuery(text, { of, ...clock }).query);
  } catch (error) {
    if (error instanceof QueryProblem) return `${error.kind}: ${explainProblem(error, text)}`;
    throw error;
  }
}

const RAW = "key_verifications_v1";
const HOURS = "key_verifications_per_hour_v1";

describe("each rule and its kind", () => {
  const many = (count: number, item: string): string => Array(count).fill(item).join(", ");

  test.each([
    ["16 KiB", `select 1 from ${RAW} --${"x".repeat(16_384 - 37)}`, "SELECT"],
    [
      "a byte more",
      `select 1 from ${RAW} --${"x".repeat(16_384 - 36)}`,
      "invalid_analytics_query: Line 1, column 1: the query has 16385 bytes, more than 16384",
    ],
    [
      "bytes, not characters",
      `select '${"é".repeat(8_192)}' from ${RAW}`,
      "invalid_analytics_query: Line 1, column 1: the query has",
    ],
    ["64 columns", `select ${many(64, "1")} from ${RAW}`, "SELECT"],
    [
      "65 columns",
      `select ${many(65, "1")} from ${RAW}`,
      "invalid_analytics_query: Line 1, column 200: this SELECT has 65 columns, more than 64",
    ],
    [
      "65 columns in a subquery",
      `select 1 from (select ${many(65, "1")} from ${RAW})`,
      "invalid_analytics_query: Line 1, column 215: this SELECT has 65",
    ],
    ["2000 nodes", `select count(${many(1_997, "1")}) from ${RAW}`, "SELECT"],
    [
      "2001 nodes",
      `select count(${many(1_998, "1")}) from ${RAW}`,
      "invalid_analytics_query: Line 1, column 1: the query has 2001 parts",
    ],
    [
      "a chain of 1000 operators",
      `select 1${" + 1".repeat(1_000)} from ${RAW}`,
      "invalid_analytics_query: Line 1, column 1: the query has 2003 parts",
    ],
    [
      "a chain of 4000",
      `select 1${"+1".repeat(4_000)} from ${RAW}`,
      "invalid_analytics_query: Line 1, column 1: the query has 8003 parts",
    ],
    [
      "WITH named like a table",
      `with ${RAW} as (select 1 from ${HOURS}) select 1 from ${RAW}`,
      "invalid_analytics_table: Line 1, column 6: `key_verifications_v1` is the name of a table; what WITH defines needs another one",
    ],
    [
      "in other letters",
      `with "KEY_Verifications_v1" as (select 1 from ${HOURS}) select 1 from ${RAW}`,
      "invalid_analytics_table: Line 1, column 6:",
    ],
    [
      "like one of the other procedure",
      `with ratelimits_v1 as (select 1 from ${HOURS}) select 1 from ${RAW}`,
      "invalid_analytics_table: Line 1, column 6:",
    ],
    [
      "in a subquery",
      `select 1 from (with ${RAW} as (select 1 from ${HOURS}) select 1 from ${RAW})`,
      "invalid_analytics_table: Line 1, column 21:",
    ],
    ["as an expression", `with 1 as ${RAW} select 1 from ${RAW}`, "invalid_analytics_table: Line 1, column 11:"],
    [
      "IN with a column",
      `select 1 from ${RAW} where outcome in (key_id)`,
      "invalid_analytics_query: Line 1, column 54: after IN, a list of literals or a subquery is expected",
    ],
    [
      "IN with a table",
      `select 1 from ${RAW} where outcome in ${HOURS}`,
      "invalid_analytics_query: Line 1, column 53: after IN, a list",
    ],
    [
      "IN with what is computed of literals",
      `select 1 from ${RAW} where outcome in (lower('A'), 'b', -1, [1], now() - interval 1 day)`,
      "SELECT",
    ],
    [
      "IN with a subquery among literals",
      `select 1 from ${RAW} where spent_credits in (1, (select 1 from ${RAW}))`,
      "invalid_analytics_query: Line 1, column 63: after IN",
    ],
    [
      "IN with a star",
      `select 1 from ${RAW} where spent_credits in (1, count(*))`,
      "invalid_analytics_query: Line 1, column 63: after IN",
    ],
    [
      "IN with a lambda",
      `select 1 from ${RAW} where has(arrayFilter(x -> x in (arrayFilter(y -> true, [1])), [1]), 1)`,
      "invalid_analytics_query: Line 1, column 69: after IN",
    ],
    [
      "IN with a column inside of another IN",
      `select 1 from ${RAW} where (outcome in (key_id)) in (1)`,
      "invalid_analytics_query: Line 1, column 55: after IN",
    ],
    ["no FROM", "select 1", "invalid_analytics_query: Line 1, column 9: each SELECT needs a FROM"],
    [
      "no FROM in a subquery",
      `select (select 1) from ${RAW}`,
      "invalid_analytics_query: Line 1, column 17: each SELECT needs a FROM",
    ],
    [
      "no FROM in a branch",
      `select 1 from ${RAW} union all select 1`,
      "invalid_analytics_query: Line 1, column 54: each",
    ],
    [
      "no FROM in WITH",
      `with a as (select 1) select 1 from ${RAW}`,
      "invalid_analytics_query: Line 1, column 20: each",
    ],
    [
      "another table in the second branch",
      `select 1 from ${RAW} union all select 1 from keys`,
      "invalid_analytics_table: Line 1, column 60: there is no table `keys`",
    ],
    [
      "another table in the third branch",
      `select 1 from ${RAW} union all select 1 from ${RAW} union all select 1 from keys`,
      "invalid_analytics_table: Line 1, column 105: there",
    ],
    [
      "another table after a good one",
      `select 1 from ${RAW} join keys using (key_id)`,
      "invalid_analytics_table: Line 1, column 41: there",
    ],
    ["another table", "select 1 from keys", "invalid_analytics_table: Line 1, column 15: there is no table `keys`"],
    [
      "in another case",
      `select 1 from ${RAW.toUpperCase()}`,
      "invalid_analytics_table: Line 1, column 15: there is no table",
    ],
    [
      "of the other procedure",
      "select 1 from ratelimits_v1",
      "invalid_analytics_table: Line 1, column 15: `ratelimits_v1` is read by analytics.getRatelimits",
    ],
    ["in JOIN", `select 1 from ${RAW} join keys on 1`, "invalid_analytics_table: Line 1, column 41:"],
    ["after a comma", `select 1 from ${RAW}, "pg_class"`, "invalid_analytics_table: Line 1, column 37:"],
    [
      "in IN",
      `select 1 from ${RAW} where key_id in (select id from keys)`,
      "invalid_analytics_table: Line 1, column 68:",
    ],
    [
      "in ORDER BY",
      `select 1 from ${RAW} order by (select 1 from keys)`,
      "invalid_analytics_table: Line 1, column 60:",
    ],
    [
      "in a window",
      `select sum(1) over (order by (select 1 from keys)) from ${RAW}`,
      "invalid_analytics_table: Line 1, column 45:",
    ],
    [
      "with a database",
      `select 1 from default.${RAW}`,
      "invalid_analytics_table: Line 1, column 15: a table's name stands alone, without a database before it",
    ],
    [
      "with a database in its quotes",
      `select 1 from "default.${RAW}"`,
      "invalid_analytics_table: Line 1, column 15: there is no table",
    ],
    [
      "a table function",
      "select 1 from numbers(10)",
      "invalid_analytics_function: Line 1, column 15: functions that return tables are not offered",
    ],
    [
      "a function that is not offered",
      `select sleep(3) from ${RAW}`,
      "invalid_analytics_function: Line 1, column 8: the function `sleep` is not offered",
    ],
    [
      "anywhere",
      `select 1 from ${RAW} group by 1 having file('x') = 'y'`,
      "invalid_analytics_function: Line 1, column 54: the function `file`",
    ],
    [
      "in a branch that is never taken",
      `select if(true, 1, url('x')) from ${RAW}`,
      "invalid_analytics_function: Line 1, column 20:",
    ],
    ["with its name in quotes", `select "sleep"(3) from ${RAW}`, "invalid_analytics_function: Line 1, column 8:"],
    [
      "a combinator that is not offered",
      `select sumArray(tags) from ${RAW}`,
      "invalid_analytics_function: Line 1, column 8:",
    ],
    [
      "a name of Object.prototype",
      `select constructor(1), __proto__(1) from ${RAW}`,
      "invalid_analytics_function: Line 1, column 8:",
    ],
  ])("analytics query check enforces the rule: %s", (_, text, expected) => {
    expect(respond(text).slice(0, expected.length)).toBe(expected);
  });
});

describe("precedence of rules", () => {
  test.each([
    ["no table before no function", "select sleep(1) from keys", "invalid_analytics_table"],
    [
      "a table function before a function",
      "select sleep(1) from url('x')",
      "invalid_analytics_function: Line 1, column 22",
    ],
    ["FROM before tables", "select (select 1) from keys", "invalid_analytics_query: Line 1, column 17"],
    ["IN before FROM", "select 1 in x", "invalid_analytics_query: Line 1, column 13: after IN"],
    ["WITH before IN", `with ${RAW} as (select 1) select 1 in x`, "invalid_analytics_table"],
    [
      "size before WITH",
      `with ${RAW} as (select 1) select ${Array(65).fill("1").join()}`,
      "invalid_analytics_query: Line 1, column 176: this",
    ],
    [
      "SETTINGS before size",
      `select ${Array(65).fill("1").join()} from ${RAW} settings x = 1`,
      "invalid_analytics_query: Line 1, column 164: SETTINGS is not served",
    ],
    [
      "statements before their kind",
      `drop table x; select 1 from ${RAW}`,
      "invalid_analytics_query: Line 1, column 15: only one",
    ],
    ["a function before the retention", `select sleep(1) from ${RAW} where time > 1`, "invalid_analytics_function"],
    [
      "of two places that are too large the first",
      `select (select ${Array(65).fill("1").join()} from ${RAW}), ${Array(64).fill("1").join()} from ${RAW}`,
      "invalid_analytics_query: Line 1, column 144: this",
    ],
    ["IN before tables", "select 1 from db.keys where 1 in x", "invalid_analytics_query: Line 1, column 34: after IN"],
    ["FROM before table functions", "select (select 1) from url('x')", "invalid_analytics_query: Line 1, column 17"],
    [
      "of two places the first",
      "select 1 from b, a",
      "invalid_analytics_table: Line 1, column 15: there is no table `b`",
    ],
  ])("analytics query check reports the error of the first broken rule: %s", (_, text, expected) => {
    expect(respond(text).slice(0, expected.length)).toBe(expected);
  });
});

test("analytics query that reads another procedure's table is rejected, and the error names that procedure", () => {
  expect(respond("select 1 from ratelimits_v1")).toBe(
    "invalid_analytics_table: Line 1, column 15: `ratelimits_v1` is read by analytics.getRatelimits",
  );
  expect(respond(`select 1 from ${RAW}`, "ratelimits")).toBe(
    `invalid_analytics_table: Line 1, column 15: \`${RAW}\` is read by analytics.getVerifications`,
  );
});

describe("CTEs", () => {
  test.each([
    ["by the select", `with a as (select 1 from ${RAW}) select 1 from a`],
    [
      "by subqueries",
      `with a as (select 1 from ${RAW}) select (select 1 from (select 1 from a)) from a where 1 in (select 1 from a)`,
    ],
    [
      "by definitions before and after it",
      `with b as (select 1 from a), a as (select 1 from ${RAW}), c as (select 1 from a) select 1 from b, c`,
    ],
    [
      "by the other branches, from the first one",
      `with a as (select 1 from ${RAW}) select 1 from a union all select 1 from a`,
    ],
    ["also from parentheses", `(with a as (select 1 from ${RAW}) select 1 from a) union all select 1 from a`],
    ["in its own subquery", `select 1 from (with a as (select 1 from ${RAW}) select 1 from a)`],
    [
      "in a branch of a subquery",
      `select 1 from ((with a as (select 1 from ${RAW}) select 1 from a) union all select 1 from a)`,
    ],
    ["in quotes or without", `with "a" as (select 1 from ${RAW}) select 1 from a`],
  ])("analytics CTE can be used %s", (_, text) => {
    expect(respond(text)).toMatch(/^(SELECT|WITH)/);
  });

  test.each([
    ["by itself", "with a as (select 1 from a) select 1 from a"],
    ["outside of its subquery", `select 1 from (with a as (select 1 from ${RAW}) select 1 from a), a`],
    ["by a branch before it", `select 1 from a union all with a as (select 1 from ${RAW}) select 1 from a`],
    ["in other letters", `with A as (select 1 from ${RAW}) select 1 from a`],
    ["when it is an expression", `with (select 1 from ${RAW}) as a select 1 from a`],
  ])("analytics CTE cannot be used %s", (_, text) => {
    expect(respond(text)).toContain("invalid_analytics_table: Line 1");
    expect(respond(text)).toContain("there is no table `a`");
  });
});

test("analytics functions are case-insensitive and keep the caller's spelling", () => {
  expect(
    respond(
      `select COUNTIF(passed), TOSTARTOFHOUR("TODATE"(time)), Date_Trunc('day', now()) from ratelimits_v1`,
      "ratelimits",
    ),
  ).toBe("SELECT COUNTIF(`passed`), TOSTARTOFHOUR(TODATE(`time`)), Date_Trunc('day', now()) FROM `ratelimits_v1`");
});

describe("rule 12: 30 days are kept, the clock says 2026-11-22 13:45:10.500", () => {
  const { raw } = clock.visibleFrom;
  const inRaw = [
    [`time >= ${raw}`, true],
    [`time >= ${raw - 1}`, false],
    [`time > ${raw - 1}`, false],
    [`${raw - 1} <= time`, false],
    [`${raw - 1} < time`, false],
    [`time = ${raw - 1}`, false],
    [`time < ${raw - 1}`, true],
    [`time != 5`, true],
    [`time between ${raw} and 5`, true],
    [`time between 5 and ${NOW_MS}`, false],
    [`time not between 5 and 6`, true],
    [`outcome = 'VALID' and (time >= 5 and key_id = 'a')`, false],
    [`outcome = 'VALID' or time >= 5`, true],
    [`not (time < 5)`, true],
    [`(time >= 5) as old`, false],
    [`time >= 5 + ${raw}`, true],
    [`time >= '2026-10-23 13:45:10.500'`, true],
    [`time >= '2026-10-23 13:45:10'`, false],
    [`time >= '2026-10-23'`, true],
    [`time >= '2026-10-22'`, false],
    [`time >= '2026-10-22T20:00:00-20:00'`, true],
    [`time >= toDate('2026-10-22')`, false],
    [`time >= '2026-10-22'::Date`, false],
    [`time >= now() - interval 30 day`, true],
    [`time >= now() - interval 31 day`, false],
    [`time >= now() - interval 720 hour`, true],
    [`time >= now() - interval 721 hour`, false],
    [`time >= now() - interval 1 month`, false],
    [`time >= now() - toIntervalDay(31)`, false],
    [`time >= now() - interval '31' day`, false],
    [`time >= now() - 30 * 86400`, true],
    [`time >= now() - 31 * 86400`, false],
    [`time >= now64() - interval 30 day`, true],
    [`time >= today() - 30`, true],
    [`time >= today() - 31`, false],
    [`time >= toStartOfDay(now() - interval 30 day)`, true],
    [`time >= toStartOfMonth(now() - interval 30 day)`, true],
    [`time >= toStartOfMonth(now() - interval 31 day)`, false],
    [`time >= date_trunc('week', now() - interval 31 day)`, false],
    [`time >= toDate(now()) - interval 30 day`, true],
    [`time >= NOW() - TOINTERVALDAY(31)`, false],
    [`TODATE(FROMUNIXTIMESTAMP64MILLI(time)) >= '2026-10-22'`, false],
    [`time >= toUnixTimestamp64Milli(now64()) - 2592000000`, true],
    [`time >= toUnixTimestamp64Milli(now64()) - 2592000001`, false],
    [`time >= toUnixTimestamp(now() - interval 30 day) * 1000`, true],
    [`time >= toUnixTimestamp(now() - interval 31 day) * 1000`, false],
    [`time >= toInt64(toUnixTimestamp(now() - interval 31 day)) * 1000`, false],
    [`fromUnixTimestamp64Milli(time) >= now() - interval 31 day`, false],
    [`fromUnixTimestamp64Milli(time) >= now() - interval 30 day`, true],
    [`toDateTime(time / 1000) >= '2026-10-23 13:45:10'`, true],
    [`toDateTime(time / 1000) >= '2026-10-23 13:45:09'`, false],
    [`toStartOfHour(fromUnixTimestamp64Milli(time)) >= '2026-10-23 13:00:00'`, true],
    [`toStartOfHour(fromUnixTimestamp64Milli(time)) >= '2026-10-23 12:00:00'`, false],
    [`toDate(fromUnixTimestamp64Milli(time)) >= '2026-10-23'`, true],
    [`toDate(fromUnixTimestamp64Milli(time)) >= '2026-10-22'`, false],
    [`time >= '1000'`, false],
    [`time >= spent_credits`, true],
    [`time >= (select 5 from ${RAW})`, true],
    [`time >= 'no time'`, true],
    [`spent_credits >= 5`, true],
    [`key_verifications_v1.time >= 5`, false],
    [`time::Int64 >= 5`, true],
    [`5`, true],
    [`time >= 5 as old`, false],
    [`((time >= ${raw}) as recent) and key_id = 'a'`, true],
    [`${raw - 1} = time`, false],
    [`5 > time`, true],
    [`5 >= time`, true],
    [`time >= toStartOfDay(now() - interval 30 day) - 60`, false],
    [`toDate(time) >= '2026-10-22'`, false],
    [`toDateTime(time) >= '2026-10-01 00:00:00'`, true],
    [`toDateTime(time / 1000000) >= '2026-10-01 00:00:00'`, true],
    [`toDateTime(time * 1000) >= '2026-10-01 00:00:00'`, true],
    [`toDateTime(time / spent_credits) >= '2026-10-01 00:00:00'`, true],
    [`toDateTime64(time / 1000, 3) >= '2026-10-23 13:45:10.500'`, true],
    [`toDateTime64(time / 1000, 3) >= '2026-10-23 13:45:10.499'`, false],
    [`toString(time) >= '2026-10-01 00:00:00'`, true],
    [`fromUnixTimestamp64Milli(spent_credits) >= '2026-10-01 00:00:00'`, true],
    [`toStartOfHour(fromUnixTimestamp64Milli(spent_credits)) >= '2026-10-01 00:00:00'`, true],
    [`now() >= '2026-10-01 00:00:00'`, true],
  ] as const;
  test.each(inRaw)(
    "analytics query of raw rows with the condition %s is accepted or rejected by its time bound",
    (where, allowed) => {
      expect(respond(`select count() from ${RAW} where ${where}`).startsWith("SELECT")).toBe(allowed);
    },
  );

  test.each([
    ["hour", "time >= '2026-10-23 13:00:00'", true],
    ["hour", "time >= '2026-10-23 12:59:59'", false],
    ["minute", "time >= '2026-10-23 13:45:00'", true],
    ["minute", "time >= '2026-10-23 13:44:59'", false],
    ["hour", `time >= ${Date.parse("2026-10-23T13:00:00Z") / 1000}`, true],
    ["hour", `time >= ${Date.parse("2026-10-23T13:00:00Z") / 1000 - 1}`, false],
    ["hour", "time >= toStartOfHour(now()) - interval 30 day", true],
    ["hour", "toStartOfDay(time) >= '2026-10-23 00:00:00'", true],
    ["hour", "toStartOfDay(time) >= '2026-10-22 00:00:00'", false],
    ["hour", "toStartOfWeek(time) >= '2026-10-18'", true],
    ["hour", "toStartOfWeek(time) >= '2026-10-17'", false],
    ["hour", "toStartOfWeek(time, 1) >= '2026-10-19'", true],
    ["hour", "toStartOfWeek(time, 1) >= '2026-10-18'", false],
    ["hour", "date_trunc('week', time) >= '2026-10-18'", false],
    ["hour", "toDateTime(time) >= now() - interval 31 day", false],
    // ClickHouse compares a DateTime with a number as seconds, and rejects the comparison of a Date with a number.
    ["hour", `toStartOfDay(time) >= ${Date.parse("2026-10-23T00:00:00Z") / 1000}`, true],
    ["hour", `toStartOfDay(time) >= ${Date.parse("2026-10-23T00:00:00Z") / 1000 - 1}`, false],
    ["hour", `toStartOfHour(time) >= ${Date.parse("2026-10-23T13:00:00Z") / 1000 - 1}`, false],
    ["hour", `toStartOfMinute(time) >= ${Date.parse("2026-10-23T13:00:00Z") / 1000 - 1}`, false],
    ["hour", `date_trunc('day', time) >= ${Date.parse("2026-10-23T00:00:00Z") / 1000 - 1}`, false],
    ["hour", "toDate(time) >= 5", true],
    ["hour", "toStartOfMonth(time) >= 5", true],
    ["hour", "time >= toStartOfDay(now() - interval 30 day) + 13 * 3600", true],
    ["hour", "fromUnixTimestamp64Milli(time) >= '2026-10-01 00:00:00'", true],
    ["day", "time >= 5", true],
    ["day", "toDateTime(time) >= 5", false],
    ["day", "time >= '2026-10-23'", true],
    ["day", "time >= '2026-10-22'", false],
    ["day", "time >= today() - interval 30 day", true],
    ["day", "time >= today() - interval 31 day", false],
    ["day", "time >= now() - interval 30 day", true],
    ["month", "time >= '2026-10-01'", true],
    ["month", "time >= '2026-09-30'", false],
    ["month", "toStartOfQuarter(time) >= '2026-10-01'", true],
    ["month", "toStartOfYear(time) >= '2026-01-01'", true],
    ["month", "toStartOfYear(time) >= '2025-12-30'", false],
  ])(
    "analytics query of the table per %s with the condition %s is accepted or rejected by its time bound",
    (bucket, where, allowed) => {
      expect(
        respond(`select count() from key_verifications_per_${bucket}_v1 where ${where}`).startsWith("SELECT"),
      ).toBe(allowed);
    },
  );

  test.each([
    ["in a subquery", `select 1 from (select time from ${RAW} where time >= 5)`, false],
    [
      "in a subquery below another bound",
      `select 1 from (select time, key_id from ${RAW} where time >= 5) where key_id = 'a'`,
      false,
    ],
    ["in WITH", `with a as (select time from ${RAW} where time >= 5) select 1 from a`, false],
    ["in a branch", `select 1 from ${RAW} union all select 1 from ${RAW} where time > 5`, false],
    ["of a subquery's column", `select 1 from (select 5 as time from ${RAW}) where time >= 5`, true],
    ["of a definition's column", `with a as (select 5 as time from ${RAW}) select 1 from a where time >= 5`, true],
    ["of an alias that hides the column", `select spent_credits as time from ${RAW} where time >= 5`, true],
    [
      "of an alias for the start of a bucket",
      `select toStartOfHour(time) as time from ${HOURS} where time >= '2026-10-23 12:00:00'`,
      false,
    ],
    ["of an alias of the table", `select 1 from ${RAW} as r where r.time >= 5`, false],
    [
      "of the joined table",
      `select 1 from ${HOURS} as h join ${RAW} as r using (key_id) where r.time >= ${raw} and h.time >= '2026-10-01'`,
      false,
    ],
    [
      "of both, allowed",
      `select 1 from ${HOURS} as h join ${RAW} as r using (key_id) where r.time >= ${raw} and h.time >= '2026-10-24'`,
      true,
    ],
    [
      "of a joined table that has no name for it",
      `select 1 from ${HOURS} as h join ${RAW} as r using (key_id) where time >= 5`,
      false,
    ],
    ["of another table's name", `select 1 from ${HOURS} as h join ${RAW} as r using (key_id) where x.time >= 5`, true],
    ["of a table that has an alias, by its name", `select 1 from ${RAW} as r where ${RAW}.time >= 5`, true],
    [
      "of a joined subquery",
      `select 1 from ${RAW} as r join (select 5 as time, key_id from ${RAW}) as s using (key_id) where s.time >= 5`,
      true,
    ],
    ["of a definition that hides the column", `with spent_credits as time select 1 from ${RAW} where time >= 5`, true],
    ["beside a definition of another name", `with spent_credits as spent select 1 from ${RAW} where time >= 5`, false],
    [
      "beside WITH that defines a query named time",
      `with time as (select 1 from ${RAW}) select 1 from ${RAW} where time >= 5`,
      false,
    ],
    [
      "beside an alias in a subquery",
      `select (select spent_credits as time from ${RAW} limit 1) as first from ${RAW} where time >= 5`,
      false,
    ],
    [
      "of a table's own column in spite of an alias",
      `select spent_credits as time from ${RAW} as r where r.time >= 5`,
      false,
    ],
    ["in HAVING", `select time from ${RAW} group by time having time >= 5`, true],
  ])("analytics query check recognizes a time bound, or rejects the query: %s", (_, text, allowed) => {
    expect(/^(SELECT|WITH)/.test(respond(text))).toBe(allowed);
  });

  test("analytics retention error names the table, the earliest time and the position", () => {
    expect(respond(`select count() from ${HOURS}\nwhere time >= '2020-01-01 00:00:00'`)).toBe(
      "query_range_exceeds_retention: Line 2, column 15: the rows of key_verifications_per_hour_v1 are kept from 2026-10-23T13:45:10.500Z on, and this asks for older ones",
    );
  });

  test("each analytics table has its own retention", () => {
    const visibleFrom = { ...clock.visibleFrom, day: 0 };
    const query = (bucket: string): string => `select 1 from ratelimits_per_${bucket}_v1 where time >= '2026-01-01'`;
    expect(() => readQuery(query("day"), { of: "ratelimits", nowMs: NOW_MS, visibleFrom })).not.toThrow();
    expect(() => readQuery(query("hour"), { of: "ratelimits", nowMs: NOW_MS, visibleFrom })).toThrow(QueryProblem);
  });
});
