import type { Pool, PoolClient } from "pg";

/**
 * One transaction over rows that leave no marks in the outbox and are in no cache, so that there is nothing to forget when it
 * ends; for all others there is `inTransaction`. Commits when `work` returns, rolls back when it throws, and tries once.
 */
export async function inUnmarkedTransaction<T>(db: Pool, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  const tx = await db.connect();
  let failure: Error | undefined;
  try {
    await tx.query("begin");
    const result = await work(tx);
    await tx.query("commit");
    return result;
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    await tx.query("rollback").catch(() => undefined);
    throw error;
  } finally {
    tx.release(failure);
  }
}
