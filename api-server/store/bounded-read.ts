import type { Pool } from "pg";
import { isWaitOver } from "./failures.ts";
import type { Queryable } from "./queryable.ts";
import { inUnmarkedTransaction } from "./unmarked-transaction.ts";

/** Runs read statements with a timeout of `msMax` each. Returns `TOO_SLOW` when one timed out. */
export async function inBoundedRead<T>(
  db: Pool,
  msMax: number,
  read: (db: Queryable) => Promise<T>,
): Promise<T | "TOO_SLOW"> {
  try {
    return await inUnmarkedTransaction(db, async (tx) => {
      // Only for this transaction, like `set local`.
      const text = "select set_config('statement_timeout', $1, true)";
      await tx.query({ name: "limit-statement-time", text, values: [`${msMax}ms`] });
      return read(tx);
    });
  } catch (error) {
    if (isWaitOver(error)) return "TOO_SLOW";
    throw error;
  }
}
