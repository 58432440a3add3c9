import { BUCKETS, type Bucket } from "../../../analytics/tables.ts";
import type { RatelimitEvent, UsageEvent, VerificationEvent } from "../../../edge/events/contract.ts";

/* Computes the counts that an analytics store must have in the simplest way. */

/** Counts of a table: sums by the JSON of their dimensions. */
export type Counts = Readonly<Record<string, readonly number[]>>;

const START_OF: Readonly<Record<Bucket, (iso: string) => string>> = {
  minute: (iso) => `${iso.slice(0, 16)}:00Z`,
  hour: (iso) => `${iso.slice(0, 13)}:00:00Z`,
  day: (iso) => `${iso.slice(0, 10)}T00:00:00Z`,
  month: (iso) => `${iso.slice(0, 7)}-01T00:00:00Z`,
};

/** Returns the start of the bucket in Unix seconds. */
const startOf = (bucket: Bucket, timeMs: number): number =>
  Date.parse(START_OF[bucket](new Date(timeMs).toISOString())) / 1000;

/** Returns the counts by table name. Of events with the same id the first counts. */
export function plainCounts(events: readonly UsageEvent[]): Record<string, Counts> {
  const distinct = [...new Map(events.toReversed().map((event) => [event.id, event])).values()];
  const verifications = distinct.filter((event) => event.type === "verification");
  const ratelimits = distinct.filter((event) => event.type === "ratelimit");
  const tables: Record<string, Counts> = {
    verification_totals_hour: sums(verifications, (event) => [
      [event.workspaceId, startOf("hour", event.timeMs), event.keySpaceId, event.outcome],
      [event.spentCredits, 1],
    ]),
  };
  for (const bucket of BUCKETS) {
    tables[`verification_counts_${bucket}`] = sums(verifications, (event) => verificationRow(bucket, event));
    tables[`ratelimit_counts_${bucket}`] = sums(ratelimits, (event) => ratelimitRow(bucket, event));
  }
  return tables;
}

type Row = readonly [dimensions: readonly unknown[], sums: readonly number[]];

const verificationRow = (bucket: Bucket, event: VerificationEvent): Row => [
  [
    event.workspaceId,
    startOf(bucket, event.timeMs),
    event.keySpaceId,
    event.keyId,
    event.identityId ?? "",
    event.externalId ?? "",
    event.outcome,
    event.tags.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    event.source,
    event.appId ?? "",
  ],
  [event.spentCredits, 1],
];

const ratelimitRow = (bucket: Bucket, event: RatelimitEvent): Row => [
  [event.workspaceId, startOf(bucket, event.timeMs), event.namespaceId, event.identifier],
  event.passed ? [1, 1, event.cost, event.cost] : [0, 1, 0, event.cost],
];

function sums<E>(events: readonly E[], rowOf: (event: E) => Row): Counts {
  const counts: Record<string, number[]> = {};
  for (const event of events) {
    const [dimensions, added] = rowOf(event);
    const key = JSON.stringify(dimensions);
    counts[key] = added.map((value, i) => value + (counts[key]?.[i] ?? 0));
  }
  return counts;
}

/** Columns of each table in the order of `plainCounts`: dimensions, then sums. */
export const COLUMNS: Readonly<
  Record<string, { readonly dimensions: readonly string[]; readonly sums: readonly string[] }>
> = {
  verification_totals_hour: {
    dimensions: ["workspace_id", "time", "key_space_id", "outcome"],
    sums: ["spent_credits", "count"],
  },
  ...Object.fromEntries(
    BUCKETS.flatMap((bucket) => [
      [
        `verification_counts_${bucket}`,
        {
          dimensions: [
            "workspace_id",
            "time",
            "key_space_id",
            "key_id",
            "identity_id",
            "external_id",
            "outcome",
            "tags",
            "source",
            "app_id",
          ],
          sums: ["spent_credits", "count"],
        },
      ],
      [
        `ratelimit_counts_${bucket}`,
        {
          dimensions: ["workspace_id", "time", "namespace_id", "identifier"],
          sums: ["passed", "total", "passed_tokens", "total_tokens"],
        },
      ],
    ]),
  ),
};
