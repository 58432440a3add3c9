import { one, themed } from "./query.ts";

const LEAP = "toDateTime('2024-02-29 23:59:59')";

export const TIME = [
  ...themed("starts of buckets", [
    one(`toStartOfMinute(${LEAP}) AS a, toStartOfHour(${LEAP}) AS b, toStartOfDay(${LEAP}) AS c`),
    one(
      `toStartOfWeek(${LEAP}) AS a, toStartOfWeek(${LEAP}, 1) AS b, toStartOfWeek(toDate('2024-02-25')) AS c, toStartOfWeek(toDate('2024-02-25'), 1) AS d`,
    ),
    one(`toStartOfMonth(${LEAP}) AS a, toStartOfQuarter(${LEAP}) AS b, toStartOfYear(${LEAP}) AS c`),
    one(
      "toStartOfDay(toDate('2024-02-29')) AS a, toStartOfMonth(toDate('2024-02-29')) AS b, toStartOfYear(toDate('2024-12-31')) AS c",
    ),
    one(
      `date_trunc('minute', ${LEAP}) AS a, date_trunc('hour', ${LEAP}) AS b, date_trunc('day', ${LEAP}) AS c, date_trunc('week', ${LEAP}) AS d`,
    ),
    one(`date_trunc('month', ${LEAP}) AS a, date_trunc('quarter', ${LEAP}) AS b, date_trunc('year', ${LEAP}) AS c`),
    { query: one(`date_trunc('second', ${LEAP}) AS a`), refused: "date_trunc takes the units of buckets" },
    one(
      "date_trunc('week', toDate('2024-03-03')) AS a, date_trunc('month', toDate('2024-03-03')) AS b, DATE_TRUNC('MONTH', toDate('2024-03-03')) AS c",
    ),
    "SELECT toStartOfHour(fromUnixTimestamp64Milli(time)) AS hour, count() AS n FROM key_verifications_v1 GROUP BY hour ORDER BY hour",
    "SELECT toStartOfDay(fromUnixTimestamp64Milli(time)) AS day, count() AS n FROM key_verifications_v1 GROUP BY day ORDER BY day",
    "SELECT toDate(fromUnixTimestamp64Milli(time)) AS day, sum(spent_credits) AS n FROM key_verifications_v1 GROUP BY day ORDER BY day DESC",
    "SELECT toStartOfWeek(fromUnixTimestamp64Milli(time), 1) AS week, count() FROM key_verifications_v1 GROUP BY week ORDER BY week",
    "SELECT toStartOfDay(time) AS day, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY day ORDER BY day",
    "SELECT toStartOfWeek(time) AS week, sum(count) AS n FROM key_verifications_per_day_v1 GROUP BY week ORDER BY week",
    "SELECT toStartOfMonth(time) AS month, sum(count) AS n FROM key_verifications_per_day_v1 GROUP BY month ORDER BY month",
    "SELECT toDate(time) AS day, sum(count) AS n FROM key_verifications_per_minute_v1 GROUP BY day ORDER BY day",
    "SELECT toStartOfMinute(toDateTime(time / 1000)) AS m, count() AS n FROM key_verifications_v1 GROUP BY m ORDER BY n DESC, m LIMIT 20",
    "SELECT date_trunc('day', time) AS day, sum(count) FROM key_verifications_per_hour_v1 GROUP BY day ORDER BY day",
  ]),
  ...themed("arithmetic with times", [
    one("toDate('2024-02-28') + 1 AS a, toDate('2024-02-28') + 2 AS b, toDate('2024-03-01') - 1 AS c"),
    one(`${LEAP} + 1 AS a, ${LEAP} - 60 AS b`),
    one(
      "toDate('2024-03-01') - toDate('2024-02-28') AS a, toDateTime('2024-03-01 00:00:00') - toDateTime('2024-02-28 12:00:00') AS b",
    ),
    one(
      "toDate('2024-02-29') + INTERVAL 1 YEAR AS a, toDate('2024-01-31') + INTERVAL 1 MONTH AS b, toDate('2024-03-31') - INTERVAL 1 MONTH AS c",
    ),
    one(
      "toDate('2024-02-29') + INTERVAL 1 HOUR AS a, toDate('2024-02-29') + INTERVAL 1 DAY AS b, toDate('2024-02-29') - INTERVAL 2 WEEK AS c",
    ),
    one(
      `${LEAP} + INTERVAL 1 SECOND AS a, ${LEAP} - INTERVAL 1 DAY AS b, ${LEAP} + INTERVAL 1 QUARTER AS c, ${LEAP} + INTERVAL 12 MONTH AS d`,
    ),
    one(
      `${LEAP} + toIntervalDay(1) AS a, ${LEAP} + toIntervalMonth(2) AS b, ${LEAP} - toIntervalHour(25) AS c, ${LEAP} + toIntervalMinute(-5) AS d`,
    ),
    one(
      `${LEAP} + toIntervalWeek(1) AS a, ${LEAP} + toIntervalQuarter(1) AS b, ${LEAP} + toIntervalYear(4) AS c, ${LEAP} + toIntervalSecond(1) AS d`,
    ),
    one(
      "toDateTime64('2024-02-29 23:59:59.999', 3) + toIntervalMillisecond(1) AS a, toDateTime64('2024-02-29 23:59:59.999', 3) + INTERVAL 1 MONTH AS b",
    ),
    one("toDate('2024-02-29') + INTERVAL '2' DAY AS b, INTERVAL 1 DAY + toDate('2024-02-29') AS c"),
    one("INTERVAL '1 day' + toDate('2024-02-29') AS a"),
    "SELECT toStartOfHour(fromUnixTimestamp64Milli(time)) + INTERVAL 1 HOUR AS next, count() AS n FROM key_verifications_v1 GROUP BY next ORDER BY n DESC, next LIMIT 10",
    "SELECT time + INTERVAL 1 MONTH AS a, sum(count) FROM key_verifications_per_day_v1 GROUP BY a ORDER BY a",
    "SELECT max(time) - min(time) AS a FROM key_verifications_per_hour_v1",
    "SELECT max(time) - min(time) AS a FROM key_verifications_per_day_v1",
    "SELECT max(time) - min(time) AS ms FROM key_verifications_v1",
  ]),
  ...themed("comparing times", [
    "SELECT sum(count) FROM key_verifications_per_hour_v1 WHERE time >= '2024-02-29 00:00:00' AND time < '2024-03-01 00:00:00'",
    "SELECT sum(count) FROM key_verifications_per_hour_v1 WHERE time >= toDate('2024-02-29') AND time < toDate('2024-03-01')",
    "SELECT sum(count) FROM key_verifications_per_day_v1 WHERE time = '2024-02-29'",
    "SELECT sum(count) FROM key_verifications_per_day_v1 WHERE time >= toDateTime('2024-02-29 00:00:00')",
    "SELECT sum(count) FROM key_verifications_per_day_v1 WHERE time > toDateTime('2024-02-29 00:00:01')",
    "SELECT sum(count) FROM key_verifications_per_day_v1 WHERE time BETWEEN '2024-02-10' AND '2024-02-12'",
    "SELECT sum(count) FROM key_verifications_per_day_v1 WHERE time IN ('2024-02-10', '2024-02-29')",
    "SELECT sum(count) FROM key_verifications_per_hour_v1 WHERE time >= now() - INTERVAL 7 DAY",
    "SELECT sum(count) FROM key_verifications_per_day_v1 WHERE time >= today() - 7",
    "SELECT sum(count) FROM key_verifications_per_day_v1 WHERE time >= now() - INTERVAL 7 DAY",
    "SELECT sum(count) FROM key_verifications_per_month_v1 WHERE time >= toStartOfMonth(now())",
    "SELECT sum(count) FROM key_verifications_per_minute_v1 WHERE time > toDateTime('2024-03-01 23:58:00')",
    "SELECT count() FROM key_verifications_v1 WHERE time >= toUnixTimestamp64Milli(toDateTime64('2024-02-29 00:00:00', 3)) AND time < toUnixTimestamp64Milli(toDateTime64('2024-03-01 00:00:00', 3))",
    "SELECT count() FROM key_verifications_v1 WHERE fromUnixTimestamp64Milli(time) >= toDateTime('2024-02-29 12:00:00')",
    "SELECT count() FROM key_verifications_v1 WHERE toDate(fromUnixTimestamp64Milli(time)) = '2024-02-29'",
    {
      query: "SELECT count() FROM key_verifications_v1 WHERE time >= toDateTime('2024-02-29 00:00:00')",
      oracle: "SELECT count() FROM key_verifications_v1 WHERE time >= 1709164800000",
    },
    {
      query: "SELECT count() FROM key_verifications_v1 WHERE time >= now() - INTERVAL 7 DAY AND time < now()",
      oracle: "SELECT count() FROM key_verifications_v1 WHERE time >= 1708770600000 AND time < 1709375400000",
    },
    {
      query:
        "SELECT count() FROM key_verifications_v1 WHERE time BETWEEN toDate('2024-02-10') AND toDate('2024-02-11')",
      oracle: "SELECT count() FROM key_verifications_v1 WHERE time BETWEEN 1707523200000 AND 1707609600000",
    },
    one(
      "toDate('2024-02-29') = toDateTime('2024-02-29 00:00:00') AS a, toDate('2024-02-29') < toDateTime('2024-02-29 00:00:01') AS b",
    ),
    one(
      "toDateTime('2024-02-29 00:00:00') = toDateTime64('2024-02-29 00:00:00.001', 3) AS a, toDate('2024-02-29') > '2024-02-28' AS b",
    ),
  ]),
  ...themed("clock", [
    {
      query: one("now() AS a, today() AS b"),
      oracle: one("toDateTime('2024-03-02 10:30:00') AS a, toDate('2024-03-02') AS b"),
    },
    { query: one("toStartOfHour(now()) AS a, now() - INTERVAL 1 DAY AS b, toDate(now()) = today() AS c") },
    { query: one("now64() AS a, toUnixTimestamp(now()) AS b, formatDateTime(now(), '%F %T') AS c") },
    {
      query: one(
        "toStartOfDay(now()) AS a, today() - INTERVAL 30 DAY AS b, now() > toDateTime('2020-01-01 00:00:00') AS c",
      ),
    },
  ]),
  ...themed("making times", [
    one(
      "toDate('2024-02-29') AS a, toDateTime('2024-02-29 12:34:56') AS b, toDateTime64('2024-02-29 12:34:56.789', 3) AS c",
    ),
    one(
      "toDate('2024-02-29 12:34:56') AS a, toDateTime('2024-02-29') AS b, toDate(toDateTime('2024-02-29 12:34:56')) AS c",
    ),
    one("toDateTime(0) AS a, toDate(0) AS b, toDateTime(1709251199) AS c, toDate(19782) AS d"),
    one("fromUnixTimestamp64Milli(toInt64(1709251199999)) AS a, fromUnixTimestamp64Milli(toInt64(0)) AS b"),
    one(
      "toUnixTimestamp64Milli(toDateTime64('2024-02-29 23:59:59.999', 3)) AS a, toUnixTimestamp(toDateTime('2024-02-29 23:59:59')) AS b",
    ),
    "SELECT toDateTime(time / 1000) AS a, time FROM key_verifications_v1 ORDER BY time, request_id LIMIT 5",
    "SELECT fromUnixTimestamp64Milli(time) AS a FROM key_verifications_v1 ORDER BY time DESC, request_id LIMIT 5",
    "SELECT toUnixTimestamp64Milli(fromUnixTimestamp64Milli(time)) = time AS same, count() FROM key_verifications_v1 GROUP BY same",
    "SELECT toUnixTimestamp(time) AS a, sum(count) FROM key_verifications_per_hour_v1 GROUP BY a ORDER BY a LIMIT 5",
    { query: one("toDateTime('not a time') AS a"), fails: true },
    { query: one("toDate('2024-02-30') AS a"), refused: "a day that no calendar has" },
    "SELECT time FROM key_verifications_per_month_v1 GROUP BY time ORDER BY time",
    one("CAST('2024-02-29' AS Date) AS a, '2024-02-29 01:02:03'::DateTime AS b, toDateTime(toDate('2024-02-29')) AS c"),
  ]),
  ...themed("formatting times", [
    one(
      `formatDateTime(${LEAP}, '%Y-%m-%d %H:%i:%S') AS a, formatDateTime(${LEAP}, '%F %T') AS b, formatDateTime(${LEAP}, '%y %j %e') AS c`,
    ),
    one(
      `formatDateTime(${LEAP}, '%M %b %a %W') AS a, formatDateTime(${LEAP}, '%I %p %h') AS b, formatDateTime(${LEAP}, '100%% plain') AS c`,
    ),
    one(
      `formatDateTime(${LEAP}, '%D %R %u %w') AS a, formatDateTime(${LEAP}, '%V %G %Q') AS b, formatDateTime(${LEAP}, '') AS c`,
    ),
    "SELECT formatDateTime(time, '%Y-%m') AS month, sum(count) FROM key_verifications_per_day_v1 GROUP BY month ORDER BY month",
    "SELECT formatDateTime(time, '%H') AS hour, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY hour ORDER BY hour",
    "SELECT formatDateTime(fromUnixTimestamp64Milli(time), '%Y%m%d') AS d, count() FROM key_verifications_v1 GROUP BY d ORDER BY d",
    one(
      "toString(toDate('2024-02-29')) AS a, toString(toDateTime('2024-02-29 01:02:03')) AS b, toString(toDateTime64('2024-02-29 01:02:03.4', 3)) AS c",
    ),
    "SELECT toString(time) AS t FROM key_verifications_per_hour_v1 GROUP BY t ORDER BY t LIMIT 3",
  ]),
];
