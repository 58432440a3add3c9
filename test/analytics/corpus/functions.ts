import { one, themed } from "./query.ts";

/** A moment of the hour that Berlin has twice, and one of the hour that it lacks. */
const [TWICE, LACKED] = ["2041-10-27 00:30:00", "2042-03-30 01:30:00"];

export const FUNCTIONS = [
  ...themed("choices", [
    one("multiIf(1 = 2, 'a', 1 = 1, 'b', 'c') AS a, multiIf(1 = 2, 1, NULL) AS b, multiIf(NULL, 1, 2) AS c"),
    "SELECT multiIf(spent_credits < 5, 'few', spent_credits < 50, 'some', 'many') AS size, count() AS n FROM key_verifications_v1 GROUP BY size ORDER BY size",
    { query: one("multiIf(1 = 1, 'a') AS a"), fails: true },
    one(
      "ifNull(NULL, 2) AS a, ifNull(1, NULL) AS b, ifNull(NULL, 'ü') AS c, ifNull(NULL, NULL) AS d, ifNull(-3, 300) AS e",
    ),
    "SELECT ifNull(if(spent_credits > 9, spent_credits, NULL), 0 - 1) AS v, count() AS n FROM key_verifications_v1 GROUP BY v ORDER BY v LIMIT 9",
  ]),
  ...themed("parts of times", [
    one(
      "toHour(toDateTime('2042-03-05 13:45:59')) AS a, toHour(toDateTime64('2042-03-05 23:59:59.999', 3)) AS b, toHour(NULL) AS c",
    ),
    { query: one("toHour(toDate('2042-03-05')) AS a"), fails: true },
    one(
      "toDayOfWeek(toDate('2042-03-02')) AS a, toDayOfWeek(toDate('2042-03-03')) AS b, toMonth(toDate('2042-12-31')) AS c",
    ),
    "SELECT toHour(time) AS h, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY h ORDER BY h",
    "SELECT toDayOfWeek(time) AS d, sum(count) AS n FROM key_verifications_per_day_v1 GROUP BY d ORDER BY d",
    "SELECT toMonth(fromUnixTimestamp64Milli(time)) AS m, count() AS n FROM key_verifications_v1 GROUP BY m ORDER BY m",
    one(
      "dateDiff('hour', toDateTime('2042-01-01 10:59:59'), toDateTime('2042-01-01 11:00:00')) AS a, dateDiff('minute', toDateTime('2042-01-01 10:59:59'), toDateTime('2042-01-01 09:00:00')) AS b",
    ),
    one(
      "dateDiff('week', toDate('2042-01-05'), toDate('2042-01-06')) AS a, dateDiff('month', toDate('2042-01-31'), toDate('2041-11-01')) AS b, dateDiff('quarter', toDate('2042-03-31'), toDate('2042-04-01')) AS c, dateDiff('year', toDate('2042-12-31'), toDate('2041-01-01')) AS d",
    ),
    one(
      "dateDiff('day', toDate('2042-01-07'), toDateTime('2042-01-06 23:00:00')) AS a, dateDiff('second', toDate('2042-01-07'), toDate('2042-01-08')) AS b, dateDiff('days', toDate('2042-01-07'), toDate('2042-01-09')) AS c",
    ),
    one("dateDiff('day', NULL, toDate('2042-01-09')) AS a"),
    { query: one("dateDiff('century', toDate('2042-01-07'), toDate('2042-01-09')) AS a"), fails: true },
    "SELECT dateDiff('hour', time, toDateTime('2042-06-15 12:00:00')) AS h, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY h ORDER BY h LIMIT 30",
  ]),
  ...themed("time zones", [
    one(
      `toHour(toDateTime('${TWICE}'), 'Europe/Berlin') AS a, toHour(toDateTime('${TWICE}') + INTERVAL 1 HOUR, 'Europe/Berlin') AS b, toHour(toDateTime('${LACKED}'), 'Europe/Berlin') AS c`,
    ),
    one(
      "toDate(toDateTime('2042-06-14 22:30:00'), 'Europe/Berlin') AS a, toDate(toDateTime('2042-06-15 02:30:00'), 'America/New_York') AS b, toMonth(toDateTime('2042-06-30 22:30:00'), 'Europe/Berlin') AS c, toDayOfWeek(toDateTime('2042-06-15 22:30:00'), 0, 'Europe/Berlin') AS d",
    ),
    one(
      "formatDateTime(toDateTime('2042-01-14 20:15:00'), '%Y-%m-%d %H:%i', 'Asia/Kolkata') AS a, formatDateTime(toDateTime('2042-07-14 20:15:00'), '%Y-%m-%d %H:%i', 'Europe/London') AS b",
    ),
    one(
      "toStartOfMonth(toDateTime('2042-06-30 22:30:00'), 'Europe/Berlin') AS a, toStartOfQuarter(toDateTime('2042-06-30 22:30:00'), 'Europe/Berlin') AS b, toStartOfYear(toDateTime('2041-12-31 23:30:00'), 'Europe/Berlin') AS c, toStartOfWeek(toDateTime('2042-06-14 22:30:00'), 0, 'Europe/Berlin') AS d",
    ),
    "SELECT toDate(fromUnixTimestamp64Milli(time), 'Pacific/Auckland') AS d, count() AS n FROM key_verifications_v1 GROUP BY d ORDER BY d",
    "SELECT toHour(time, 'America/Sao_Paulo') AS h, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY h ORDER BY h",
    { query: one("toHour(now(), 'Europe/Nowhere') AS a"), fails: true },
    { query: one("toMonth(toDate('2042-06-30'), 'Europe/Berlin') AS a"), refused: "a zone of a date has no meaning" },
  ]),
  ...themed("more numbers", [
    one(
      "intDiv(7, 2) AS a, intDiv(-7, 2) AS b, intDiv(7, -2) AS c, intDiv(200, -1) AS d, intDiv(toInt64(7), 2) AS e, intDiv(0, 5) AS f",
    ),
    { query: one("intDiv(1, 0) AS a"), fails: true },
    { query: one("intDiv(toInt64(-9223372036854775807) - 1, -1) AS a"), fails: true },
    { query: one("intDiv(7.9, 2) AS a"), refused: "intDiv takes integers" },
    "SELECT intDiv(spent_credits, 10) AS tens, count() AS n FROM key_verifications_v1 GROUP BY tens ORDER BY tens",
    "SELECT intDiv(spent_credits - 20, 7) AS v, count() AS n FROM key_verifications_v1 GROUP BY v ORDER BY v",
  ]),
  ...themed("more aggregates", [
    // ClickHouse approximates a quantile of more than 8,192 rows, which only VALID has.
    "SELECT outcome, median(spent_credits) AS m, quantiles(0.1, 0.5, 0.9)(spent_credits) AS q FROM key_verifications_per_month_v1 WHERE outcome != 'VALID' GROUP BY outcome ORDER BY outcome",
    "SELECT median(spent_credits) AS a, quantiles(0.5, 1)(spent_credits) AS b, avgIf(spent_credits, 1 = 1) AS c, uniqIf(key_id, 1 = 1) AS d, argMax(key_id, count) AS e, argMin(spent_credits, count) AS f FROM key_verifications_per_day_v1 WHERE count > 100000000",
    "SELECT quantiles(0.5)(if(count > 2, spent_credits, NULL)) AS a, median(if(count > 2, spent_credits, NULL)) AS b FROM key_verifications_per_month_v1",
    { query: "SELECT quantiles(spent_credits) FROM key_verifications_per_month_v1", fails: true },
    "SELECT outcome, avgIf(spent_credits, source = 'api') AS a, uniqIf(key_id, source = 'api') AS u, uniqIf(key_id, outcome, count > 1) AS p FROM key_verifications_per_day_v1 GROUP BY outcome ORDER BY outcome",
    "SELECT argMax(request_id, time * 1000 + length(request_id)) = argMax(request_id, time * 1000 + length(request_id)) AS a FROM key_verifications_v1",
    "SELECT k, argMax(s, t) AS latest, argMin(s, t) AS first FROM (SELECT key_id AS k, toString(time) AS s, time AS t FROM key_verifications_v1) GROUP BY k ORDER BY k",
    "SELECT argMax(t, if(t > 5000, NULL, t)) AS a, argMin(if(t > 5000, t, NULL), t) AS b, argMax(t, t - 9) AS c FROM (SELECT time AS t FROM key_verifications_v1)",
    {
      query: "SELECT argMax(tags, time) = argMax(tags, time) AS a FROM key_verifications_v1",
      refused: "argMax of arrays",
      refusedBy: "postgres",
    },
  ]),
  ...themed("more texts", [
    one(
      "position('hällo', 'l') AS a, position('abc', '') AS b, position('abc', 'z') AS c, position('', '') AS d, position('', 'a') AS e, position('名前🎉', '🎉') AS f, position(NULL, 'a') AS g",
    ),
    one(
      "replaceAll('aaa', 'a', 'bb') AS a, replaceAll('üxü', 'ü', 'é') AS b, replaceAll('abc', 'b', '') AS c, replaceAll('', 'a', 'b') AS d, replaceAll('abc', 'z', 'y') AS e",
    ),
    one(
      "arrayStringConcat(['a', 'ü', ''], '-') AS a, arrayStringConcat(['a', 'b']) AS b, arrayStringConcat([]) AS c, arrayStringConcat(['a', '名'], 'é') AS d",
    ),
    { query: one("arrayStringConcat([1, 2], ',') AS a"), refused: "arrayStringConcat takes texts" },
    one(
      "substring('hello' FROM 2 FOR 3) AS a, substring('hello' FROM 2) AS b, substring('hello' FROM -3 FOR 2) AS c, substring('hello' FROM 2 FOR 3)",
    ),
    "SELECT external_id, position(external_id, 'e') AS p, replaceAll(external_id, 'e', 'é') AS r FROM key_verifications_v1 GROUP BY external_id ORDER BY external_id",
    "SELECT arrayStringConcat(tags, ', ') AS t, count() AS n FROM key_verifications_v1 GROUP BY t ORDER BY t LIMIT 50",
  ]),
];
