/*
 * Public tables of the analytics procedures, with ClickHouse types. Column names and types are part of the API (api-v2.md section 18). Both
 * stores provide these tables, although their internal tables differ.
 */

/** Column type. `DateTime` is in UTC with a resolution of seconds, and `Date` is in UTC too. An `Int64` column `time` is Unix ms. */
export type ColumnType = "String" | "Int64" | "Float64" | "Bool" | "DateTime" | "Date" | "Array(String)";

/** Time bucket of an aggregated table; `undefined` for a raw table with one row per event. */
export type Bucket = "minute" | "hour" | "day" | "month";

/** Procedure that reads a table. */
export type AnalyticsOf = "verifications" | "ratelimits";

export interface PublicTable {
  readonly of: AnalyticsOf;
  readonly name: string;
  readonly bucket: Bucket | undefined;
  /** Columns by name, in the order in which `*` lists them. */
  readonly columns: Readonly<Record<string, ColumnType>>;
}

export const BUCKETS: readonly Bucket[] = ["minute", "hour", "day", "month"];

const TIME_OF_BUCKET: Readonly<Record<Bucket, ColumnType>> = {
  minute: "DateTime",
  hour: "DateTime",
  day: "Date",
  month: "Date",
};

const VERIFICATIONS: PublicTable = {
  of: "verifications",
  name: "key_verifications_v1",
  bucket: undefined,
  columns: {
    time: "Int64",
    request_id: "String",
    workspace_id: "String",
    key_space_id: "String",
    key_id: "String",
    external_id: "String",
    outcome: "String",
    tags: "Array(String)",
    source: "String",
    app_id: "String",
    region: "String",
    spent_credits: "Int64",
  },
};

const RATELIMITS: PublicTable = {
  of: "ratelimits",
  name: "ratelimits_v1",
  bucket: undefined,
  columns: {
    time: "Int64",
    request_id: "String",
    workspace_id: "String",
    namespace_id: "String",
    identifier: "String",
    passed: "Bool",
    latency: "Float64",
    override_id: "String",
    limit: "Int64",
    remaining: "Int64",
    reset_at: "Int64",
    tokens: "Int64",
  },
};

const verificationsPer = (bucket: Bucket): PublicTable => ({
  of: "verifications",
  name: `key_verifications_per_${bucket}_v1`,
  bucket,
  columns: {
    time: TIME_OF_BUCKET[bucket],
    workspace_id: "String",
    key_space_id: "String",
    key_id: "String",
    external_id: "String",
    outcome: "String",
    tags: "Array(String)",
    source: "String",
    app_id: "String",
    spent_credits: "Int64",
    count: "Int64",
  },
});

const ratelimitsPer = (bucket: Bucket): PublicTable => ({
  of: "ratelimits",
  name: `ratelimits_per_${bucket}_v1`,
  bucket,
  columns: {
    time: TIME_OF_BUCKET[bucket],
    workspace_id: "String",
    namespace_id: "String",
    identifier: "String",
    passed: "Int64",
    total: "Int64",
    total_tokens: "Int64",
    passed_tokens: "Int64",
  },
});

export const PUBLIC_TABLES: readonly PublicTable[] = [
  VERIFICATIONS,
  ...BUCKETS.map(verificationsPer),
  RATELIMITS,
  ...BUCKETS.map(ratelimitsPer),
];
