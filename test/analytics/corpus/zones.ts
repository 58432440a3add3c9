import { one, themed } from "./query.ts";

const at = (time: string, zone: string): string => `toDateTime('${time}', '${zone}')`;

/** A day of 23 hours, one of 25, and days that Lord Howe changes by half an hour; the last two zones have no or two midnights then. */
const CHANGES = [
  ["Europe/Berlin", "2041-03-31", "2041-03-30 23:30:00"],
  ["Europe/Berlin", "2041-10-27", "2041-10-27 00:30:00"],
  ["America/New_York", "2041-11-03", "2041-11-03 06:30:00"],
  ["Australia/Lord_Howe", "2041-10-06", "2041-10-05 15:45:00"],
  ["Australia/Lord_Howe", "2041-04-07", "2041-04-06 15:15:00"],
  ["Asia/Kolkata", "2041-06-15", "2041-06-15 18:31:00"],
  ["Asia/Kathmandu", "2041-06-15", "2041-06-15 18:16:00"],
  ["America/Sao_Paulo", "2018-11-04", "2018-11-04 03:15:00"],
  ["America/Havana", "2041-11-03", "2041-11-03 05:30:00"],
] as const;

export const ZONES = [
  ...themed(
    "zones on days of change",
    CHANGES.flatMap(([zone, day, utc]) => [
      one(
        `toStartOfDay(toDateTime('${utc}'), '${zone}') AS a, toStartOfHour(toDateTime('${utc}'), '${zone}') AS b, toStartOfMinute(toDateTime('${utc}'), '${zone}') AS c, date_trunc('hour', toDateTime('${utc}') + INTERVAL 1 HOUR, '${zone}') AS d, toStartOfDay(toDate('${day}'), '${zone}') AS e, toString(toDateTime(toDate('${day}'), '${zone}')) AS f`,
      ),
      one(
        `toStartOfDay(toDate('${day}'), '${zone}') + INTERVAL 1 DAY AS a, toDateTime('${utc}', 'UTC') + INTERVAL 1 DAY AS b, toDateTime(toDateTime('${utc}'), '${zone}') + INTERVAL 1 DAY AS c, toDateTime(toDateTime('${utc}'), '${zone}') - INTERVAL 1 MONTH AS d, toDateTime(toDateTime('${utc}'), '${zone}') - INTERVAL 1 WEEK AS e, toDateTime(toDateTime('${utc}'), '${zone}') + INTERVAL 24 HOUR AS f, toDateTime(toDateTime('${utc}'), '${zone}') + 86400 AS g`,
      ),
      one(
        `toDateTime('${day} 00:15:00', '${zone}') AS a, toDateTime('${day} 01:30:00', '${zone}') AS b, toDateTime('${day} 01:45:00', '${zone}') AS c, toDateTime('${day} 02:15:00', '${zone}') AS d, toDateTime('${day} 02:30:00', '${zone}') AS e, toDateTime64('${day} 03:00:00.250', 3, '${zone}') AS f, toDateTime('${day}', '${zone}') AS g`,
      ),
      one(
        `dateDiff('hour', toDate('${day}'), toDate('${day}') + 1, '${zone}') AS a, dateDiff('minute', toDate('${day}'), toDate('${day}') + 1, '${zone}') AS b, dateDiff('day', toDate('${day}'), toDateTime('${utc}'), '${zone}') AS c, dateDiff('hour', toDateTime('${utc}'), toDateTime('${utc}') + 5400, '${zone}') AS d, dateDiff('week', toDateTime('${utc}'), toDateTime('${utc}') + 86400, '${zone}') AS e`,
      ),
      one(
        `toHour(toDateTime(toDateTime('${utc}'), '${zone}')) AS a, formatDateTime(toDateTime(toDateTime('${utc}'), '${zone}'), '%F %T') AS b, toString(toDateTime64(toDateTime('${utc}'), 3, '${zone}')) AS c, toDate(toDateTime(toDateTime('${utc}'), '${zone}')) AS d, toStartOfWeek(toDateTime(toDateTime('${utc}'), '${zone}')) AS e, date_trunc('month', toDateTime('${utc}'), '${zone}') AS f, date_trunc('week', toDateTime('${utc}'), '${zone}') AS g, CAST(toDateTime(toDateTime('${utc}'), '${zone}') AS Date) AS h`,
      ),
    ]),
  ),
  ...themed("zones in types", [
    one(
      `${at("2041-06-15 01:00:00", "Europe/Berlin")} = ${at("2041-06-14 19:00:00", "America/New_York")} AS a, ${at("2041-06-15 01:00:00", "Europe/Berlin")} = '2041-06-15 01:00:00' AS b, ${at("2041-06-15 00:00:00", "Europe/Berlin")} = toDate('2041-06-15') AS c, toDate('2041-06-15') > ${at("2041-06-14 23:59:59", "Europe/Berlin")} AS d, ${at("2041-06-15 01:00:00", "Europe/Berlin")} IN ('2041-06-15 01:00:00', '2041-06-15 02:00:00') AS e, ${at("2041-06-15 01:00:00", "Europe/Berlin")} BETWEEN '2041-06-15' AND '2041-06-16' AS f`,
    ),
    one(
      `${at("2041-06-15 01:00:00", "Asia/Tokyo")} - ${at("2041-06-15 01:00:00", "Europe/Berlin")} AS a, toUnixTimestamp(${at("2041-06-15 01:00:00", "Asia/Tokyo")}) AS b, toInt64(${at("2041-06-15 01:00:00", "Asia/Tokyo")}) AS c, toUnixTimestamp64Milli(toDateTime64('2041-06-15 01:00:00.5', 3, 'Asia/Tokyo')) AS d`,
    ),
    one(
      `toDateTime(2256000000, 'Asia/Tokyo') AS a, toString(toDateTime(2256000000, 'Asia/Tokyo')) AS b, toString(fromUnixTimestamp64Milli(toInt64(2256000000123), 'Asia/Kolkata')) AS c, toString(toDateTime(${at("2041-06-15 01:00:00", "Asia/Tokyo")})) AS d, toString(toDateTime64(${at("2041-06-15 01:00:00", "Asia/Tokyo")}, 3)) AS e, toString(CAST(${at("2041-06-15 01:00:00", "Asia/Tokyo")} AS DateTime)) AS f`,
    ),
    one(
      `toString(toStartOfDay(${at("2041-06-15 01:00:00", "Asia/Tokyo")}, 'America/New_York')) AS a, toString(toDateTime(${at("2041-06-15 01:00:00", "Asia/Tokyo")}, 'UTC')) AS b, concat('at ', toString(${at("2041-06-15 01:00:00", "Asia/Tokyo")})) AS c, toString(${at("2041-06-15 01:00:00", "Asia/Tokyo")} + toIntervalMillisecond(5)) AS d`,
    ),
    one(
      `if(1 = 1, ${at("2041-06-15 01:00:00", "Asia/Tokyo")}, ${at("2041-06-15 02:00:00", "Asia/Tokyo")}) AS a, toString(coalesce(NULL, ${at("2041-06-15 01:00:00", "Asia/Tokyo")})) AS b, [${at("2041-06-15 01:00:00", "Asia/Tokyo")}] AS c, toString([${at("2041-06-15 01:00:00", "Asia/Tokyo")}][1]) AS d`,
    ),
    one(
      `toDateTime('2041-06-15 01:00:00Z', 'Asia/Tokyo') AS a, toDateTime('1970-01-01 00:00:00', 'Europe/Berlin') AS b, toDateTime('2106-02-07 06:28:15', 'America/New_York') AS c`,
    ),
    {
      query: one(`if(1 = 1, ${at("2041-06-15 01:00:00", "Asia/Tokyo")}, now()) AS a`),
      refused: "a time of two zones, of which ClickHouse takes the first",
    },
    {
      query: one(`if(1 = 1, ${at("2041-06-15 01:00:00", "Asia/Tokyo")}, toDate('2041-06-15')) AS a`),
      refused: "a Date beside a time in a zone",
    },
    { query: one("toStartOfDay(now(), 'Europe/Nowhere') AS a"), fails: true },
    { query: one("toStartOfDay(now(), 'europe/berlin') AS a"), fails: true },
    { query: one("toStartOfDay(now(), 'utc') AS a"), fails: true },
    { query: one("toStartOfDay(now(), '') AS a"), fails: true },
    { query: one("toStartOfDay(now(), '+01:00') AS a"), fails: true },
    { query: "SELECT toStartOfDay(time, key_id) AS a FROM key_verifications_per_hour_v1", fails: true },
    { query: one("toStartOfDay(now(), concat('Europe/', 'Berlin')) AS a"), refused: "a zone is a literal" },
    { query: one("toStartOfDay(NULL, 'Europe/Berlin') AS a"), refused: "a zone of nothing" },
    { query: one("toStartOfHour(toDate('2041-06-15'), 'Europe/Berlin') AS a"), fails: true },
    { query: one("date_trunc('month', toDate('2041-06-15'), 'Europe/Berlin') AS a"), fails: true },
  ]),
  ...themed("zones over rows", [
    "SELECT toStartOfDay(time, 'America/New_York') AS day, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY day ORDER BY day",
    "SELECT toStartOfDay(fromUnixTimestamp64Milli(time), 'Asia/Kolkata') AS day, count() AS n FROM key_verifications_v1 GROUP BY day ORDER BY day",
    "SELECT toString(toStartOfHour(fromUnixTimestamp64Milli(time), 'Australia/Adelaide')) AS hour, count() AS n FROM key_verifications_v1 GROUP BY hour ORDER BY hour LIMIT 50",
    "SELECT toDateTime(time, 'Asia/Kathmandu') AS t, sum(count) AS n FROM key_verifications_per_hour_v1 WHERE toDateTime(time, 'Asia/Kathmandu') >= '2024-02-29 00:00:00' GROUP BY t ORDER BY t",
    "SELECT sum(count) AS n FROM key_verifications_per_hour_v1 WHERE time >= toDateTime('2024-02-28 00:00:00', 'Europe/Berlin') AND time < toStartOfDay(toDate('2024-02-29'), 'Europe/Berlin')",
    {
      query:
        "SELECT count() FROM key_verifications_v1 WHERE time >= toDateTime('2024-02-29 00:00:00', 'America/New_York')",
      oracle: "SELECT count() FROM key_verifications_v1 WHERE time >= 1709182800000",
    },
    "SELECT min(t) AS a, toString(max(t)) AS b, toString(groupArray(t)[1]) AS c FROM (SELECT toDateTime(time, 'Asia/Tokyo') AS t FROM key_verifications_per_hour_v1 ORDER BY time)",
    "SELECT toString(max(toDateTime(time, 'Asia/Tokyo'))) AS a, toStartOfDay(min(time), 'America/New_York') AS b, toDate(min(time), 'America/New_York') AS c, toStartOfDay(min(time), 'Asia/Tokyo') AS d, toStartOfHour(min(time), 'Asia/Kolkata') AS e, toHour(min(time), 'America/New_York') AS f FROM key_verifications_per_hour_v1 WHERE count > 1000000000",
    "SELECT a.t AS t, n, m FROM (SELECT toStartOfDay(time, 'Asia/Tokyo') AS t, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY t) AS a JOIN (SELECT toStartOfDay(time, 'Asia/Tokyo') AS t, max(count) AS m FROM key_verifications_per_hour_v1 GROUP BY t) AS b ON a.t = b.t ORDER BY t",
    "WITH days AS (SELECT toStartOfDay(time, 'Asia/Tokyo') AS day, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY day) SELECT toMonth(day) AS m, toDayOfWeek(day) AS d, sum(n) AS s FROM days GROUP BY m, d ORDER BY m, d",
    "SELECT toStartOfDay(time, 'Asia/Tokyo') AS t FROM key_verifications_per_hour_v1 GROUP BY t UNION ALL SELECT toStartOfDay(toDateTime(time), 'Asia/Tokyo') AS t FROM key_verifications_per_day_v1 GROUP BY t",
    {
      query:
        "SELECT toStartOfDay(time, 'Asia/Tokyo') AS t FROM key_verifications_per_hour_v1 UNION ALL SELECT time AS t FROM key_verifications_per_hour_v1",
      refused: "a column of two zones",
    },
    "SELECT count() FROM key_verifications_per_hour_v1 WHERE toStartOfDay(time, 'Asia/Tokyo') IN (SELECT toStartOfDay(time, 'Asia/Tokyo') FROM key_verifications_per_hour_v1 WHERE outcome = 'EXPIRED')",
    "SELECT toStartOfDay(time, 'Europe/Berlin') AS day, sum(count) AS n FROM key_verifications_per_hour_v1 WHERE key_id = 'key_80' GROUP BY day ORDER BY day WITH FILL FROM toDateTime('2024-03-29 00:00:00', 'Europe/Berlin') TO toDateTime('2024-04-03 00:00:00', 'Europe/Berlin') STEP INTERVAL 1 DAY",
    "SELECT toStartOfDay(time, 'Europe/Berlin') AS day, sum(count) AS n FROM key_verifications_per_hour_v1 WHERE key_id = 'key_80' GROUP BY day ORDER BY day DESC WITH FILL FROM toDateTime('2024-04-03 02:30:00', 'Europe/Berlin') TO toDateTime('2024-02-25 00:00:00', 'Europe/Berlin') STEP INTERVAL -1 DAY",
    "SELECT toStartOfHour(time, 'Asia/Kolkata') AS hour, sum(count) AS n FROM key_verifications_per_minute_v1 WHERE key_id = 'key_80' GROUP BY hour ORDER BY hour WITH FILL STEP INTERVAL 6 HOUR LIMIT 40",
    "SELECT toStartOfDay(time, 'Asia/Tokyo') AS day, key_id, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY day, key_id ORDER BY n DESC, day, key_id LIMIT 1 BY day",
    "SELECT day, sum(n) OVER (ORDER BY day) AS s FROM (SELECT toStartOfDay(time, 'Asia/Tokyo') AS day, sum(count) AS n FROM key_verifications_per_hour_v1 GROUP BY day) ORDER BY day",
  ]),
];
