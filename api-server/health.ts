/*
 * What an api-server says of itself to whoever decides where traffic goes, and to whoever is paged.
 *
 * Readiness answers one question: can this replica serve anything? All replicas share Postgres and the store, so that what is
 * wrong there is wrong everywhere: a replica that calls itself unready for it takes the Service its last endpoint, and with it
 * every fallback. Such faults are degradations. They are told by `/readyz?verbose`, a metric and the log.
 */

/** The promise: so long a change may take to be enforced everywhere. */
export const PROPAGATION_BOUND_MS = 30_000;

/** Each reason, with what it means for callers. Shown to anybody who asks, so that nothing of the installation is in it. */
export const DEGRADATIONS = {
  "postgres-away":
    "Postgres does not answer: keys and limits that are cached are decided while that counts as fresh, all else is 500",
  "store-away":
    "Redis does not answer: limits are counted in this process, limited credits are 500, pods hear of no changes",
  "store-evicts": "Redis may evict keys: set its maxmemory-policy to noeviction, or counters and records are lost",
  "propagation-late": "changes take longer than 30 s to reach the pods",
  "events-dropped": "usage events were dropped in the last minute: statistics miss them",
} as const;

export type DegradationReason = keyof typeof DEGRADATIONS;

export const REASONS = Object.keys(DEGRADATIONS) as DegradationReason[];

/** What one look at everything found. */
export interface Observation {
  /** For how long Postgres has not answered, ms; 0 while it does. */
  readonly postgresAwayMs: number;
  readonly storeAnswers: boolean;
  readonly storeEvicts: boolean;
  /** Age of what this process knows of most workspaces, ms: one that lags behind takes nothing from the others. */
  readonly feedStalenessMs: number;
  /** Age of what this process knows of the workspace of which it is oldest, ms. */
  readonly stalenessMs: number;
  readonly eventsDroppedLately: boolean;
}

export interface Health {
  readonly ready: boolean;
  /** In the order of the table above. */
  readonly degradations: readonly DegradationReason[];
}

export const HEALTHY: Health = { ready: true, degradations: [] };

/**
 * Without Postgres a replica is ready for as long as it may answer from its cache. When only this one has lost it, the others
 * keep what it knows fresh; it is not ready all the same once the bound is over, because they can do what it cannot.
 */
export function judgeHealth(seen: Observation): Health {
  const knowsEnough = seen.postgresAwayMs <= PROPAGATION_BOUND_MS && seen.feedStalenessMs <= PROPAGATION_BOUND_MS;
  const holds: Record<DegradationReason, boolean> = {
    "postgres-away": seen.postgresAwayMs > 0,
    "store-away": !seen.storeAnswers,
    "store-evicts": seen.storeEvicts,
    "propagation-late": seen.stalenessMs > PROPAGATION_BOUND_MS,
    "events-dropped": seen.eventsDroppedLately,
  };
  return {
    ready: seen.postgresAwayMs === 0 || knowsEnough,
    degradations: REASONS.filter((reason) => holds[reason]),
  };
}
