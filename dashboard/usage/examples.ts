/** Example queries. A test runs each on both databases. */
export const EXAMPLES: readonly { readonly title: string; readonly sql: string }[] = [
  {
    title: "Outcomes per hour of the last day",
    sql: `SELECT time, outcome, sum(count) AS verifications
FROM key_verifications_per_hour_v1
WHERE time >= now() - INTERVAL 24 HOUR
GROUP BY time, outcome
ORDER BY time`,
  },
  {
    title: "Keys with the most rejections this week",
    sql: `SELECT key_id, outcome, sum(count) AS refused
FROM key_verifications_per_day_v1
WHERE time >= today() - INTERVAL 7 DAY AND outcome != 'VALID'
GROUP BY key_id, outcome
ORDER BY refused DESC
LIMIT 20`,
  },
  {
    title: "Owners with the most active keys",
    sql: `SELECT external_id, uniq(key_id) AS keys, sum(count) AS verifications
FROM key_verifications_per_day_v1
WHERE time >= today() - INTERVAL 7 DAY AND external_id != ''
GROUP BY external_id
ORDER BY keys DESC, verifications DESC
LIMIT 20`,
  },
  {
    title: "Percentage of valid verifications by day",
    sql: `SELECT time, round(100 * sumIf(count, outcome = 'VALID') / sum(count), 2) AS percent_valid
FROM key_verifications_per_day_v1
WHERE time >= today() - INTERVAL 29 DAY
GROUP BY time
ORDER BY time`,
  },
  {
    title: "Credits by key and day",
    sql: `SELECT time, key_id, sum(spent_credits) AS credits
FROM key_verifications_per_day_v1
WHERE time >= today() - INTERVAL 7 DAY
GROUP BY time, key_id
HAVING credits > 0
ORDER BY time, credits DESC`,
  },
  {
    title: "Verifications by tag",
    sql: `SELECT arrayJoin(tags) AS tag, sum(count) AS verifications
FROM key_verifications_per_day_v1
WHERE time >= today() - INTERVAL 7 DAY
GROUP BY tag
ORDER BY verifications DESC
LIMIT 20`,
  },
  {
    title: "Last 100 rejections",
    sql: `SELECT fromUnixTimestamp64Milli(time) AS at, key_id, outcome, request_id, source
FROM key_verifications_v1
WHERE outcome != 'VALID' AND time >= now() - INTERVAL 1 DAY
ORDER BY time DESC
LIMIT 100`,
  },
  {
    title: "Running total for today",
    sql: `SELECT time, sum(verifications) OVER (ORDER BY time) AS so_far
FROM (
  SELECT time, sum(count) AS verifications
  FROM key_verifications_per_hour_v1
  WHERE time >= toStartOfDay(now())
  GROUP BY time
)
ORDER BY time`,
  },
  {
    title: "Rate-limit rejections by hour",
    sql: `SELECT time, namespace_id, sum(total) - sum(passed) AS refused
FROM ratelimits_per_hour_v1
WHERE time >= now() - INTERVAL 24 HOUR
GROUP BY time, namespace_id
ORDER BY time`,
  },
  {
    title: "Latency of rate-limit decisions",
    sql: `SELECT namespace_id, count() AS checks, quantile(0.5)(latency) AS p50, quantile(0.99)(latency) AS p99
FROM ratelimits_v1
WHERE time >= now() - INTERVAL 1 HOUR
GROUP BY namespace_id
ORDER BY checks DESC`,
  },
];
