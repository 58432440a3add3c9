import { type AnalyticsOf, BUCKETS, type Bucket } from "../tables.ts";

/** A table of this store. Its partitions are days or months (UTC). */
export interface StoredTable {
  readonly of: AnalyticsOf;
  /** undefined for raw events. */
  readonly bucket: Bucket | undefined;
  readonly name: string;
  readonly partition: "day" | "month";
  /** How full its pages are filled, %: rows that are added to are updated in place only where their page has room. */
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
    fill: FILL_OF[bucket],
  }));

export const STORED_TABLES: readonly StoredTable[] = [
  { of: "verifications", bucket: undefined, name: "verification_events", partition: "day", fill: 100 },
  ...counts("verifications"),
  { of: "verifications", bucket: "hour", name: "verification_totals_hour", partition: "month", fill: 70 },
  { of: "ratelimits", bucket: undefined, name: "ratelimit_events", partition: "day", fill: 100 },
  ...counts("ratelimits"),
];
