import type { AnalyticsOf, Bucket, PublicTable } from "../tables.ts";

/*
 * What a query reads in the place of a public table: a subquery over the store's own table, which holds the bounds of the query. They stand
 * below everything that the caller wrote, and are bound as parameters.
 */

/** The column that a root key's ids restrict. */
const RESTRICTED: Readonly<Record<AnalyticsOf, string>> = { verifications: "key_space_id", ratelimits: "namespace_id" };

/** Public columns whose name in the store's table is another one. */
const STORED_AS: Readonly<Record<string, string>> = { latency: "latency_ms", limit: "max_count", tokens: "cost" };

const FROM_RAW = "{scopeRaw:Int64}";

/** The first start of a bucket of which a part is visible. */
const FIRST_OF: Readonly<Record<Bucket, string>> = {
  minute: "toStartOfMinute(toDateTime(intDiv({scopeMinute:Int64}, 1000), 'UTC'))",
  hour: "toStartOfHour(toDateTime(intDiv({scopeHour:Int64}, 1000), 'UTC'))",
  day: "toDate(toDateTime(intDiv({scopeDay:Int64}, 1000), 'UTC'))",
  month: "toStartOfMonth(toDateTime(intDiv({scopeMonth:Int64}, 1000), 'UTC'))",
};

/** A table in FROM, without a name. Buckets that lie in several parts are added up, as if they had been merged already. */
export function sourceSql({ of, bucket, columns }: PublicTable): string {
  const raw = of === "verifications" ? "verification_events" : "ratelimit_events";
  const counts = of === "verifications" ? "verification_counts" : "ratelimit_counts";
  const selected = Object.keys(columns).map((name) => {
    const stored = bucket === undefined ? (STORED_AS[name] ?? name) : name;
    return `e.${stored} as \`${name}\``;
  });
  const table = bucket === undefined ? `${raw} as e` : `${counts}_${bucket} as e final`;
  // FINAL leaves out a row whose sums are all 0, of those that the query reads: this is one that never is.
  const whole = bucket === undefined ? "" : `and e.${of === "verifications" ? "count" : "total"} > 0`;
  return `(select ${selected.join(", ")} from ${table}
    where e.workspace_id = {scopeWorkspace:String} and e.time >= ${bucket === undefined ? FROM_RAW : FIRST_OF[bucket]}
      and ({scopeAll:Bool} or e.${RESTRICTED[of]} in {scopeWithin:Array(String)}) ${whole})`;
}
