import type { Queryable } from "./queryable.ts";

/** Advisory locks for work that only one process at a time may do. The numbers identify the locks in Postgres and are never reused. */
export const ADVISORY_LOCKS = {
  relay: 7_053_001,
  refill: 7_053_002,
  partitions: 7_053_003,
  rollUp: 7_053_004,
  dropPartitions: 7_053_005,
  analyticsRole: 7_053_006,
  openWorkspaces: 7_053_007,
} as const;

/**
 * Takes the lock for the session of `db`, which must be a single connection, not a pool. Returns false if another session holds the lock.
 */
export async function tryLock(db: Queryable, lock: keyof typeof ADVISORY_LOCKS): Promise<boolean> {
  const { rows } = await db.query<{ taken: boolean }>("select pg_try_advisory_lock($1) as taken", [
    ADVISORY_LOCKS[lock],
  ]);
  return rows[0]?.taken === true;
}

/** Takes the lock for the session of this connection. Waits at most for the connection's `statement_timeout`. */
export async function waitForLock(db: Queryable, lock: keyof typeof ADVISORY_LOCKS): Promise<void> {
  await db.query("select pg_advisory_lock($1)", [ADVISORY_LOCKS[lock]]);
}

/** Releases the lock immediately. Closing the connection also releases the lock, but slightly later. */
export async function unlock(db: Queryable, lock: keyof typeof ADVISORY_LOCKS): Promise<void> {
  await db.query("select pg_advisory_unlock($1)", [ADVISORY_LOCKS[lock]]);
}

/** Waits for the lock, and holds it until the transaction ends. */
export async function takeLock(tx: Queryable, lock: keyof typeof ADVISORY_LOCKS): Promise<void> {
  await tx.query("select pg_advisory_xact_lock($1)", [ADVISORY_LOCKS[lock]]);
}

/** Takes the lock until the transaction ends. Returns false if another session holds the lock. */
export async function tryLockInTransaction(tx: Queryable, lock: keyof typeof ADVISORY_LOCKS): Promise<boolean> {
  const text = "select pg_try_advisory_xact_lock($1) as taken";
  const { rows } = await tx.query<{ taken: boolean }>(text, [ADVISORY_LOCKS[lock]]);
  return rows[0]?.taken === true;
}
