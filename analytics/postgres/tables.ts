import { type AnalyticsOf, BUCKETS, type Bucket } from "../tables.ts";

/** Table of this store, partitioned by UTC day or month. */
export interface StoredTable {
  readonly of: AnalyticsOf;
  /** Bucket of the table; `undefined` for raw events. */
  readonly bucket: Bucket | undefined;
  readonly name: string;
  readonly partition: "day" | "month";
  /** Columns of the table's primary key. */
  readonly key: string;
  /** Fill factor in percent. The free space in each page is used for in-place updates (HOT). */
  readonly fill: number;
}

const PARTITION_OF: Readonly<Record<Bucket, "day" | "month">> = {
  minute: "day",
  hour: "day",
  day: "month",
  month: "month",
};
const FILL_OF: Readonly<Record<Bucket, number>> = { minute: 95, hour: 80, day: 70, month: 70 };

export const countsTable = (of: AnalyticsOf, bucket: Bucket): string =>
  `${of === "verifications" ? "verification" : "ratelimit"}_counts_${bucket}`;

const counts = (of: AnalyticsOf): StoredTable[] =>
  BUCKETS.map((bucket) => ({
    of,
    bucket,
    name: countsTable(of, bucket),
    partition: PARTITION_OF[bucket],
    key: "workspace_id, time, dims",
    fill: FILL_OF[bucket],
  }));

const EVENTS = { partition: "day", key: "workspace_id, time, id, day", fill: 100 } as const;

export const STORED_TABLES: readonly StoredTable[] = [
  { of: "verifications", bucket: undefined, name: "verification_events", ...EVENTS },
  ...counts("verifications"),
  {
    of: "verifications",
    bucket: "hour",
    name: "verification_totals_hour",
    partition: "month",
    key: "workspace_id, key_space_id, time, outcome",
    fill: 70,
  },
  {
    of: "verifications",
    bucket: "day",
    name: "verification_key_totals_day",
    partition: "month",
    key: "workspace_id, time, key_id, key_space_id",
    fill: 70,
  },
  { of: "ratelimits", bucket: undefined, name: "ratelimit_events", ...EVENTS },
  ...counts("ratelimits"),
];
