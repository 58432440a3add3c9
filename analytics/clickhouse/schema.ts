import { BUCKETS, type Bucket } from "../tables.ts";

/*
 * ClickHouse schema. Events are inserted into a Null table. A view forwards new events to the table of raw events, and further views
 * aggregate: raw → minute → hour → day → month, and hour → totals. A single insert reaches all tables. Each table records the deduplication
 * token of the insert, so that a retry completes a partial insert.
 */

export interface Layout {
  /** Cluster name from `system.clusters`. Tables are created on all servers of the cluster, with Replicated engines. */
  readonly cluster: string | undefined;
}

/**
 * Number of deduplication tokens that a table remembers, enough for several hours. If a batch is delivered again after that, duplicates are
 * found by event id.
 */
const REMEMBERED_INSERTS = 10_000;
const REMEMBERED_SECONDS = 7 * 86_400;

/** Order of a workspace's retention values in the array `kept_days`. Positions start at 1. */
export const KEPT_DAYS: readonly (Bucket | "raw")[] = ["raw", ...BUCKETS];
const keptDays = (of: Bucket | "raw"): string => `kept_days[${KEPT_DAYS.indexOf(of) + 1}]`;

interface Kind {
  readonly raw: string;
  readonly arriving: string;
  readonly counts: string;
  /** Columns of the raw table in addition to the common columns. */
  readonly columns: readonly string[];
  /**
   * Columns that distinguish the rows of a bucket, each with its type in the count tables and the expression that computes it from an
   * event.
   */
  readonly dimensions: readonly { readonly name: string; readonly type: string; readonly from?: string }[];
  /** Dimensions that come first in the sorting key. */
  readonly sortedBy: readonly string[];
  readonly sums: readonly { readonly name: string; readonly of: string }[];
}

const LOW = "LowCardinality(String)";
const TEXT = "String codec(ZSTD(1))";
const NUMBER = "Int64 codec(T64, ZSTD(1))";
const EVENT_TIME = "Int64 codec(Delta(8), ZSTD(1))";

const VERIFICATIONS: Kind = {
  raw: "verification_events",
  arriving: "arriving_verifications",
  counts: "verification_counts",
  columns: [
    `key_space_id ${LOW}`,
    `api_id ${LOW}`,
    `key_id ${TEXT}`,
    `identity_id ${TEXT}`,
    `external_id ${TEXT}`,
    `outcome ${LOW}`,
    "tags Array(String) codec(ZSTD(1))",
    `source ${LOW}`,
    `app_id ${LOW}`,
    `region ${LOW}`,
    `spent_credits ${NUMBER}`,
    "latency_ms Float64 codec(ZSTD(1))",
  ],
  dimensions: [
    { name: "key_space_id", type: LOW },
    { name: "key_id", type: TEXT },
    { name: "identity_id", type: TEXT },
    { name: "external_id", type: TEXT },
    { name: "outcome", type: LOW },
    { name: "tags", type: "Array(String) codec(ZSTD(1))", from: "arraySort(e.tags)" },
    { name: "source", type: LOW },
    { name: "app_id", type: LOW },
  ],
  sortedBy: ["key_space_id", "key_id"],
  sums: [
    { name: "spent_credits", of: "sum(e.spent_credits)" },
    { name: "count", of: "count()" },
  ],
};

const RATELIMITS: Kind = {
  raw: "ratelimit_events",
  arriving: "arriving_ratelimits",
  counts: "ratelimit_counts",
  columns: [
    `namespace_id ${LOW}`,
    `identifier ${TEXT}`,
    "passed Bool",
    "latency_ms Float64 codec(ZSTD(1))",
    `override_id ${TEXT}`,
    `max_count ${NUMBER}`,
    `remaining ${NUMBER}`,
    `reset_at ${EVENT_TIME}`,
    `cost ${NUMBER}`,
  ],
  dimensions: [
    { name: "namespace_id", type: LOW },
    { name: "identifier", type: TEXT },
  ],
  sortedBy: ["namespace_id", "identifier"],
  sums: [
    { name: "passed", of: "countIf(e.passed)" },
    { name: "total", of: "count()" },
    { name: "passed_tokens", of: "sumIf(e.cost, e.passed)" },
    { name: "total_tokens", of: "sum(e.cost)" },
  ],
};

const COMMON = [
  `workspace_id ${LOW}`,
  `time ${EVENT_TIME}`,
  `id ${TEXT}`,
  `request_id ${TEXT}`,
  "portion_id FixedString(32) codec(ZSTD(1))",
  "kept_days Array(UInt16)",
];

/** Returns the columns of an event row, in the order that `rows.ts` uses. */
const columnsOf = (kind: Kind): readonly string[] => [...COMMON, ...kind.columns];

/** Returns the name from a column definition `name type …`. */
const nameOf = (column: string): string => column.slice(0, column.indexOf(" "));

export const ARRIVING = {
  verification: {
    table: VERIFICATIONS.arriving,
    columns: columnsOf(VERIFICATIONS).map(nameOf),
    raw: VERIFICATIONS.raw,
  },
  ratelimit: { table: RATELIMITS.arriving, columns: columnsOf(RATELIMITS).map(nameOf), raw: RATELIMITS.raw },
} as const;

const TIME_OF: Readonly<Record<Bucket, string>> = {
  minute: "DateTime('UTC') codec(Delta(4), ZSTD(1))",
  hour: "DateTime('UTC') codec(Delta(4), ZSTD(1))",
  day: "Date codec(Delta(2), ZSTD(1))",
  month: "Date codec(Delta(2), ZSTD(1))",
};

/** Source table of each bucket, and the expression for the start of the bucket that contains a source row. */
const MADE_FROM: Readonly<Record<Bucket, { readonly from: Bucket | "raw"; readonly start: string }>> = {
  minute: { from: "raw", start: "toStartOfMinute(fromUnixTimestamp64Milli(e.time, 'UTC'))" },
  hour: { from: "minute", start: "toStartOfHour(e.time)" },
  day: { from: "hour", start: "toDate(e.time, 'UTC')" },
  month: { from: "day", start: "toStartOfMonth(e.time)" },
};

/**
 * Maximum length of a bucket in days. Rows are kept for this many additional days, because a bucket stays visible until its end is past
 * retention.
 */
const DAYS_OF_BUCKET: Readonly<Record<Bucket, number>> = { minute: 1, hour: 1, day: 1, month: 31 };

const TOTALS = "verification_totals_hour";

/** Returns the idempotent statements that create all tables and views, in order. */
export function createStatements(layout: Layout): string[] {
  return [VERIFICATIONS, RATELIMITS].flatMap((kind) => [
    createTable(layout, kind.raw, rawBody(layout, kind)),
    ...BUCKETS.map((bucket) => createTable(layout, countsOf(kind, bucket), countsBody(layout, kind, bucket))),
    ...(kind === VERIFICATIONS ? [createTable(layout, TOTALS, totalsBody(layout))] : []),
    createTable(layout, kind.arriving, `(${columnsOf(kind).map(withoutCodec).join(", ")}) engine = Null`),
    // Creates the views from last to first, so that no view forwards rows before the next view exists.
    ...(kind === VERIFICATIONS ? [createView(layout, TOTALS, totalsSelect())] : []),
    ...BUCKETS.toReversed().map((bucket) => createView(layout, countsOf(kind, bucket), countsSelect(kind, bucket))),
    createView(layout, kind.raw, newEventsSelect(kind)),
  ]);
}

export const countsOf = (kind: { readonly counts: string }, bucket: Bucket): string => `${kind.counts}_${bucket}`;

const onCluster = ({ cluster }: Layout): string => (cluster === undefined ? "" : ` on cluster ${quoted(cluster)}`);

const createTable = (layout: Layout, name: string, body: string): string =>
  `create table if not exists ${name}${onCluster(layout)} ${body}`;

const createView = (layout: Layout, to: string, select: string): string =>
  `create materialized view if not exists to_${to}${onCluster(layout)} to ${to} as ${select}`;

function mergeTree({ cluster }: Layout, sums: readonly string[] = []): string {
  const engine = sums.length === 0 ? "MergeTree" : "SummingMergeTree";
  const args = sums.length === 0 ? "" : `((${sums.join(", ")}))`;
  return cluster === undefined ? `${engine}${args}` : `Replicated${engine}${args}`;
}

const settings = ({ cluster }: Layout): string =>
  cluster === undefined
    ? `non_replicated_deduplication_window = ${REMEMBERED_INSERTS}`
    : `replicated_deduplication_window = ${REMEMBERED_INSERTS}, replicated_deduplication_window_seconds = ${REMEMBERED_SECONDS}`;

function rawBody(layout: Layout, kind: Kind): string {
  const time = "fromUnixTimestamp64Milli(time, 'UTC')";
  return `(${columnsOf(kind).join(", ")}) engine = ${mergeTree(layout)}
    partition by toYYYYMM(${time}) order by (workspace_id, time, id) primary key (workspace_id, time)
    ttl toDateTime(intDiv(time, 1000), 'UTC') + toIntervalDay(${keptDays("raw")})
    settings ${settings(layout)}`;
}

/**
 * Body of a count table. `dims` is a hash of all dimensions; rows with equal hashes are summed. If the dimensions themselves were the
 * sorting key, each query would read all dimensions.
 */
function countsBody(layout: Layout, kind: Kind, bucket: Bucket): string {
  const columns = [
    `workspace_id ${LOW}`,
    `time ${TIME_OF[bucket]}`,
    ...kind.dimensions.map(({ name, type }) => `${name} ${type}`),
    "dims FixedString(16)",
    ...kind.sums.map(({ name }) => `${name} ${NUMBER}`),
    "kept_days Array(UInt16)",
  ];
  const sortedBy = ["workspace_id", "time", ...kind.sortedBy, "dims"];
  return `(${columns.join(", ")}) engine = ${mergeTree(
    layout,
    kind.sums.map(({ name }) => name),
  )}
    partition by ${bucket === "month" ? "toYear" : "toYYYYMM"}(time) order by (${sortedBy.join(", ")})
    ttl time + toIntervalDay(${keptDays(bucket)} + ${DAYS_OF_BUCKET[bucket]})
    settings ${settings(layout)}`;
}

function countsSelect(kind: Kind, bucket: Bucket): string {
  const { from, start } = MADE_FROM[bucket];
  const isFirst = from === "raw";
  const dimensions = kind.dimensions.map(({ name, from: expression }) =>
    isFirst && expression !== undefined ? `${expression} as ${name}` : `e.${name} as ${name}`,
  );
  const hashed = kind.dimensions.map(({ name, from: expression }) => expression ?? `e.${name}`);
  const columns = [
    "e.workspace_id as workspace_id",
    `${start} as time`,
    ...dimensions,
    `${isFirst ? `sipHash128(${hashed.join(", ")})` : "e.dims"} as dims`,
    ...kind.sums.map(({ name, of }) => `${isFirst ? of : `sum(e.${name})`} as ${name}`),
    "any(e.kept_days) as kept_days",
  ];
  return `select ${columns.join(", ")} from ${isFirst ? kind.raw : countsOf(kind, from)} as e group by all`;
}

/** Totals without keys, identities and tags, so that the cost of reading an API's usage does not depend on its number of keys. */
const totalsBody = (
  layout: Layout,
): string => `(workspace_id ${LOW}, key_space_id ${LOW}, time ${TIME_OF.hour}, outcome ${LOW},
    spent_credits ${NUMBER}, count ${NUMBER}, kept_days Array(UInt16)) engine = ${mergeTree(layout, ["spent_credits", "count"])}
    partition by toYYYYMM(time) order by (workspace_id, key_space_id, time, outcome)
    ttl time + toIntervalDay(${keptDays("hour")} + ${DAYS_OF_BUCKET.hour})
    settings ${settings(layout)}`;

const totalsSelect = (): string =>
  `select e.workspace_id as workspace_id, e.key_space_id as key_space_id, e.time as time, e.outcome as outcome,
          sum(e.spent_credits) as spent_credits, sum(e.count) as count, any(e.kept_days) as kept_days
     from ${countsOf(VERIFICATIONS, "hour")} as e group by all`;

/**
 * Selects events that earlier batches did not contain. Duplicates occur because a writer may send an event twice, in two stream entries.
 * The check is part of the insert, so an ingester that resumes after a stall inserts no duplicates. In a view, the source table contains
 * only the rows being inserted, even in a subquery.
 */
function newEventsSelect({ raw, arriving }: Kind): string {
  const stored = `select id from ${raw}
     where workspace_id in (select workspace_id from ${arriving}) and time in (select time from ${arriving})
       and portion_id not in (select portion_id from ${arriving})`;
  return `select * from ${arriving} where id not in (${stored})`;
}

const withoutCodec = (column: string): string => column.replace(/ codec\(.*\)$/, "");

/** Quotes an SQL identifier. */
export const quoted = (name: string): string => `\`${name.replaceAll("\\", "\\\\").replaceAll("`", "\\`")}\``;
