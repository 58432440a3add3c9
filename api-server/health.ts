import type { StoreTrouble } from "./analytics/contract.ts";

/*
 * The health that an api-server reports, for routing and for alerts.
 *
 * Readiness answers one question: can this replica serve anything? All replicas share Postgres and the store, so a problem there
 * affects all of them: if replicas became unready because of it, the Service would lose its last endpoint, and with it
 * every fallback. Such problems are degradations. They are reported by `/readyz?verbose`, a metric and the log.
 */

/** The promise: the longest time until a change is enforced everywhere. */
export const PROPAGATION_BOUND_MS = 30_000;

/** Each reason, with its meaning for callers. Visible to anyone, so it must not describe the installation. */
export const DEGRADATIONS = {
  "postgres-away":
    "Postgres does not answer: keys and limits that are cached are decided while that counts as fresh, all else is 500",
  "store-away":
    "Redis does not answer: limits are counted in this process, limited credits are 500, pods hear of no changes",
  "store-evicts": "Redis may evict keys: set its maxmemory-policy to noeviction, or counters and records are lost",
  "propagation-late": "changes take longer than 30 s to reach the pods",
  "clickhouse-away": "ClickHouse does not answer: usage events wait in Redis, queries of usage are 503",
  "clickhouse-refuses":
    "ClickHouse does not let this server in, or lacks a right or a table: usage events wait in Redis, or queries are 503",
  "clickhouse-full": "ClickHouse has no room on its disk: usage events wait in Redis",
  "clickhouse-read-only": "ClickHouse takes no writes: usage events wait in Redis",
  "clickhouse-overloaded":
    "ClickHouse refuses work, because of too many parts or queries, or too little memory: usage events wait in Redis",
  "clickhouse-slow": "ClickHouse takes very long to store usage events: they wait in Redis",
  "events-dropped": "usage events were dropped in the last minute: statistics miss them",
} as const;

export type DegradationReason = keyof typeof DEGRADATIONS;

export const REASONS = Object.keys(DEGRADATIONS) as DegradationReason[];

/** The result of one check. */
export interface Observation {
  /** For how long Postgres has not answered, ms; 0 while it does. */
  readonly postgresAwayMs: number;
  readonly storeAnswers: boolean;
  readonly storeEvicts: boolean;
  /** Staleness of most workspaces, ms: a single lagging workspace does not affect the others. */
  readonly feedStalenessMs: number;
  /** Staleness of the stalest workspace, ms. */
  readonly stalenessMs: number;
  readonly eventsDroppedLately: boolean;
  /** Of the store of usage, where that is ClickHouse. */
  readonly clickhouse: StoreTrouble | undefined;
}

export interface Health {
  readonly ready: boolean;
  /** In the order of the table above. */
  readonly degradations: readonly DegradationReason[];
}

export const HEALTHY: Health = { ready: true, degradations: [] };

/**
 * Without Postgres a replica is ready for as long as it may answer from its cache. If only this replica has lost Postgres, its data
 * stays fresh; still it becomes unready after the bound, because the other replicas can do more.
 */
export function judgeHealth(seen: Observation): Health {
  const knowsEnough = seen.postgresAwayMs <= PROPAGATION_BOUND_MS && seen.feedStalenessMs <= PROPAGATION_BOUND_MS;
  const holds: Record<DegradationReason, boolean> = {
    "postgres-away": seen.postgresAwayMs > 0,
    "store-away": !seen.storeAnswers,
    "store-evicts": seen.storeEvicts,
    "propagation-late": seen.stalenessMs > PROPAGATION_BOUND_MS,
    "clickhouse-away": seen.clickhouse === "away",
    "clickhouse-refuses": seen.clickhouse === "refuses",
    "clickhouse-full": seen.clickhouse === "full",
    "clickhouse-read-only": seen.clickhouse === "read-only",
    "clickhouse-overloaded": seen.clickhouse === "overloaded",
    "clickhouse-slow": seen.clickhouse === "slow",
    "events-dropped": seen.eventsDroppedLately,
  };
  return {
    ready: seen.postgresAwayMs === 0 || knowsEnough,
    degradations: REASONS.filter((reason) => holds[reason]),
  };
}
