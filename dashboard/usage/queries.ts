import type { Bucket, TimeWindow } from "./buckets.ts";

/*
 * SQL queries of the charts, for `analytics.getVerifications` and `analytics.getRatelimits`. Pages show the SQL next to the chart, so it is
 * formatted for reading. A test runs each query on both databases.
 */

/** Filter of a chart. An `undefined` member does not filter. A key space contains the keys of an API. */
export interface UsageFilter {
  readonly keySpaceId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly externalId?: string | undefined;
  readonly outcome?: string | undefined;
}

/** Returns a string literal of the SQL dialect, in which a backslash is an escape character. */
export const textLiteral = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

/** Returns the start of a bucket as a literal in UTC: a date for tables of days, otherwise a date-time. */
function timeLiteral(bucket: Bucket, ms: number): string {
  const text = new Date(ms).toISOString();
  return bucket === "day" ? `toDate('${text.slice(0, 10)}')` : `toDateTime('${text.slice(0, 19).replace("T", " ")}')`;
}

const CONDITIONS: readonly (readonly [keyof UsageFilter, string])[] = [
  ["keySpaceId", "key_space_id"],
  ["keyId", "key_id"],
  ["externalId", "external_id"],
  ["outcome", "outcome"],
];

const inWindow = ({ bucket, fromMs, toMs }: TimeWindow): string =>
  `time >= ${timeLiteral(bucket, fromMs)} AND time < ${timeLiteral(bucket, toMs)}`;

function whereOf(window: TimeWindow, filter: UsageFilter, ...more: readonly string[]): string {
  const conditions = CONDITIONS.flatMap(([name, column]) => {
    const wanted = filter[name];
    return wanted === undefined ? [] : [`${column} = ${textLiteral(wanted)}`];
  });
  return [`WHERE ${inWindow(window)}`, ...conditions, ...more].join("\n  AND ");
}

const verifications = ({ bucket }: TimeWindow): string => `key_verifications_per_${bucket}_v1`;
const ratelimits = ({ bucket }: TimeWindow): string => `ratelimits_per_${bucket}_v1`;

/** Query with one row for each bucket and each outcome that occurred in it: `time`, `outcome`, `verifications`, `credits`. */
export const outcomesQuery = (window: TimeWindow, filter: UsageFilter = {}): string =>
  `SELECT time, outcome, sum(count) AS verifications, sum(spent_credits) AS credits
FROM ${verifications(window)}
${whereOf(window, filter)}
GROUP BY time, outcome
ORDER BY time, outcome`;

/** Query for the most used keys, most used first: `key_id`, `verifications`, `refused`, `credits`. */
export const topKeysQuery = (window: TimeWindow, filter: UsageFilter = {}, rows = 10): string =>
  `SELECT key_id, sum(count) AS verifications, sumIf(count, outcome != 'VALID') AS refused, sum(spent_credits) AS credits
FROM ${verifications(window)}
${whereOf(window, filter)}
GROUP BY key_id
ORDER BY verifications DESC, key_id
LIMIT ${rows}`;

/** Query for the most active owners: `external_id`, `verifications`, `refused`, `credits`. Keys without an owner are omitted. */
export const topOwnersQuery = (window: TimeWindow, filter: UsageFilter = {}, rows = 10): string =>
  `SELECT external_id, sum(count) AS verifications, sumIf(count, outcome != 'VALID') AS refused, sum(spent_credits) AS credits
FROM ${verifications(window)}
${whereOf(window, filter, "external_id != ''")}
GROUP BY external_id
ORDER BY verifications DESC, external_id
LIMIT ${rows}`;

/** Query for the used key spaces, most used first: `key_space_id`, `verifications`. */
export const keySpacesQuery = (window: TimeWindow, rows = 100): string =>
  `SELECT key_space_id, sum(count) AS verifications
FROM ${verifications(window)}
${whereOf(window, {})}
GROUP BY key_space_id
ORDER BY verifications DESC, key_space_id
LIMIT ${rows}`;

/**
 * Query for `analytics.getRatelimits`: the identifiers with rejected checks, most rejections first: `namespace_id`, `identifier`, `checks`,
 * `refused`.
 */
export const refusingLimitsQuery = (window: TimeWindow, rows = 10): string =>
  `SELECT namespace_id, identifier, sum(total) AS checks, sum(total) - sum(passed) AS refused
FROM ${ratelimits(window)}
${whereOf(window, {})}
GROUP BY namespace_id, identifier
HAVING refused > 0
ORDER BY refused DESC, namespace_id, identifier
LIMIT ${rows}`;

/** Query for `analytics.getRatelimits`: the checks of a namespace, one row per bucket with checks: `time`, `checks`, `refused`. */
export const checksQuery = (window: TimeWindow, namespaceId: string): string =>
  `SELECT time, sum(total) AS checks, sum(total) - sum(passed) AS refused
FROM ${ratelimits(window)}
${whereOf(window, {}, `namespace_id = ${textLiteral(namespaceId)}`)}
GROUP BY time
ORDER BY time`;

/**
 * Query for `analytics.getRatelimits`: the identifiers of a namespace with the most checks, or with the most rejected checks: `identifier`,
 * `checks`, `refused`.
 */
export const topIdentifiersQuery = (
  window: TimeWindow,
  namespaceId: string,
  by: "checks" | "refused",
  rows = 10,
): string =>
  `SELECT identifier, sum(total) AS checks, sum(total) - sum(passed) AS refused
FROM ${ratelimits(window)}
${whereOf(window, {}, `namespace_id = ${textLiteral(namespaceId)}`)}
GROUP BY identifier
HAVING ${by} > 0
ORDER BY ${by} DESC, identifier
LIMIT ${rows}`;
