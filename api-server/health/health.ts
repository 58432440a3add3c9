import type { StoreProblem } from "../../analytics/contract.ts";

/*
 * Health of an api-server, for routing and alerts.
 *
 * A replica is ready while it can serve requests. Problems with Postgres or Redis do not make it unready: all replicas share them, so the
 * Service would lose all endpoints, and even requests that could be served from caches would fail. Such problems are degradations, which
 * `/readyz?verbose`, a metric and the log report.
 */

/** Promised propagation bound: maximum time until a change is enforced everywhere, ms. */
export const PROPAGATION_BOUND_MS = 30_000;

/**
 * Reasons for degradation, with their meanings for callers. Anyone can read these texts, so they must not reveal details of the
 * installation.
 */
export const DEGRADATIONS = {
  postgres_unavailable:
    "Postgres does not respond: requests for fresh cached keys and limits are decided, all others return 500",
  redis_unavailable:
    "Redis does not respond: this process counts limits alone, keys with limited credits return 500, pods receive no changes",
  redis_eviction_enabled:
    "Redis may evict keys: set its maxmemory-policy to noeviction, otherwise counters and records are lost",
  propagation_delayed: "changes take longer than 30 s to reach the pods",
  clickhouse_unavailable: "ClickHouse does not respond: usage events wait in Redis, usage queries return 503",
  clickhouse_access_denied:
    "ClickHouse rejects the login, or lacks a permission or a table: usage events wait in Redis, or usage queries return 503",
  clickhouse_disk_full: "the disk of ClickHouse is full: usage events wait in Redis",
  clickhouse_read_only: "ClickHouse accepts no writes: usage events wait in Redis",
  clickhouse_overloaded:
    "ClickHouse rejects work, because of too many parts or queries, or too little memory: usage events wait in Redis",
  clickhouse_slow: "ClickHouse takes very long to store usage events, which wait in Redis",
  events_dropped: "usage events were dropped in the last minute: statistics do not include them",
} as const;

export type DegradationReason = keyof typeof DEGRADATIONS;

export const REASONS = Object.keys(DEGRADATIONS) as DegradationReason[];

/** Result of one health check. */
export interface Observation {
  /** Duration for which Postgres has not responded, ms; 0 while it responds. */
  readonly postgresUnavailableMs: number;
  readonly storeAnswers: boolean;
  readonly storeEvicts: boolean;
  /** Staleness of the workspaces that do not lag, ms. */
  readonly streamStalenessMs: number;
  /** Staleness of the stalest workspace, ms. */
  readonly stalenessMs: number;
  readonly eventsDroppedLately: boolean;
  /** Problem with ClickHouse; `undefined` if there is none or the analytics store is Postgres. */
  readonly clickhouse: StoreProblem | undefined;
}

export interface Health {
  readonly ready: boolean;
  /** Current degradations, in the order of `DEGRADATIONS`. */
  readonly degradations: readonly DegradationReason[];
}

export const HEALTHY: Health = { ready: true, degradations: [] };

/**
 * Evaluates readiness and degradations. Without Postgres, a replica stays ready for as long as it is allowed to serve from its cache. If
 * only one replica has lost Postgres, its data stays fresh, but it too becomes unready after this time, because the other replicas can
 * still reach Postgres and take over.
 */
export function checkHealth(seen: Observation): Health {
  const knowsEnough =
    seen.postgresUnavailableMs <= PROPAGATION_BOUND_MS && seen.streamStalenessMs <= PROPAGATION_BOUND_MS;
  const holds: Record<DegradationReason, boolean> = {
    postgres_unavailable: seen.postgresUnavailableMs > 0,
    redis_unavailable: !seen.storeAnswers,
    redis_eviction_enabled: seen.storeEvicts,
    propagation_delayed: seen.stalenessMs > PROPAGATION_BOUND_MS,
    clickhouse_unavailable: seen.clickhouse === "unavailable",
    clickhouse_access_denied: seen.clickhouse === "access_denied",
    clickhouse_disk_full: seen.clickhouse === "disk_full",
    clickhouse_read_only: seen.clickhouse === "read_only",
    clickhouse_overloaded: seen.clickhouse === "overloaded",
    clickhouse_slow: seen.clickhouse === "slow",
    events_dropped: seen.eventsDroppedLately,
  };
  return {
    ready: seen.postgresUnavailableMs === 0 || knowsEnough,
    degradations: REASONS.filter((reason) => holds[reason]),
  };
}
