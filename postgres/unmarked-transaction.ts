import type { Pool, PoolClient } from "pg";

/**
 * Runs a transaction that invalidates no cache entries. Use it only for rows that have no outbox triggers and are not cached; for all other
 * rows use `inTransaction`. Commits when `work` returns, rolls back when it throws, and does not retry.
 */
export async function withoutOutbox<T>(db: Pool, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  const tx = await db.connect();
  let failure: Error | undefined;
  try {
    await tx.query("begin");
    const result = await work(tx);
    await tx.query("commit");
    return result;
  } catch (error) {
    await tx.query("rollback").catch((cause: unknown) => {
      failure = new Error("rollback failed", { cause });
    });
    throw error;
  } finally {
    // A client that failed to roll back is unusable: the pool closes it.
    tx.release(failure);
  }
}
