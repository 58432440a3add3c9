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
    await tx.query("rollback").catch((cause: unknown) => {
      failure = new Error("rollback failed", { cause });
    });
    throw error;
  } finally {
    // A client that could not even roll back is of no use to anybody: the pool closes it.
    tx.release(failure);
  }
}
