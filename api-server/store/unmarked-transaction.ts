import type { Pool, PoolClient } from "pg";

/**
 * A transaction on rows that leave no marks in the outbox and are not cached, so that nothing has to be forgotten when it
 * ends; for all other rows use `inTransaction`. Commits when `work` returns, rolls back when it throws, and does not retry.
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
    // A client that failed to roll back is useless: the pool closes it.
    tx.release(failure);
  }
}
