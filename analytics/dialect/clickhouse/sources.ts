import type { AnalyticsOf, Bucket, PublicTable } from "../../tables.ts";

/*
 * Replaces each public table in a query by a subquery over the internal table. The subquery restricts the rows to the scope by bound
 * parameters, below all SQL that the caller wrote.
 */

/** For each kind of usage, the column that is restricted to the ids that the root key may read. */
const RESTRICTED: Readonly<Record<AnalyticsOf, string>> = { verifications: "key_space_id", ratelimits: "namespace_id" };

/** Internal column names that differ from the public names. */
const STORED_AS: Readonly<Record<string, string>> = { latency: "latency_ms", limit: "max_count", tokens: "cost" };

const FROM_RAW = "{scopeRaw:Int64}";

/** Start of the first bucket of which at least a part is visible. */
const FIRST_OF: Readonly<Record<Bucket, string>> = {
  minute: "toStartOfMinute(toDateTime(intDiv({scopeMinute:Int64}, 1000), 'UTC'))",
  hour: "toStartOfHour(toDateTime(intDiv({scopeHour:Int64}, 1000), 'UTC'))",
  day: "toDate(toDateTime(intDiv({scopeDay:Int64}, 1000), 'UTC'))",
  month: "toStartOfMonth(toDateTime(intDiv({scopeMonth:Int64}, 1000), 'UTC'))",
};

/** Returns a FROM subquery without an alias. It sums the rows of a bucket that ClickHouse has not merged yet. */
export function sourceSql({ of, bucket, columns }: PublicTable): string {
  const raw = of === "verifications" ? "verification_events" : "ratelimit_events";
  const counts = of === "verifications" ? "verification_counts" : "ratelimit_counts";
  const selected = Object.keys(columns).map((name) => {
    const stored = bucket === undefined ? (STORED_AS[name] ?? name) : name;
    return `e.${stored} as \`${name}\``;
  });
  const table = bucket === undefined ? `${raw} as e` : `${counts}_${bucket} as e final`;
  // FINAL drops rows in which all selected sums are 0. To keep every row, a column that is never 0 is selected too.
  const nonZero = bucket === undefined ? "" : `and e.${of === "verifications" ? "count" : "total"} > 0`;
  return `(select ${selected.join(", ")} from ${table}
    where e.workspace_id = {scopeWorkspace:String} and e.time >= ${bucket === undefined ? FROM_RAW : FIRST_OF[bucket]}
      and ({scopeAll:Bool} or e.${RESTRICTED[of]} in {scopeWithin:Array(String)}) ${nonZero})`;
}
