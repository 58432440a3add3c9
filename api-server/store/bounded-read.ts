import type { Pool } from "pg";
import { isWaitOver } from "./failures.ts";
import type { Queryable } from "./queryable.ts";
import { inUnmarkedTransaction } from "./unmarked-transaction.ts";

/** Reads with statements that are given up after `msMax` each: `TOO_SLOW` when one was. */
export async function inBoundedRead<T>(
  db: Pool,
  msMax: number,
  read: (db: Queryable) => Promise<T>,
): Promise<T | "TOO_SLOW"> {
  try {
    return await inUnmarkedTransaction(db, async (tx) => {
      // For this transaction alone, as with `set local`.
      const text = "select set_config('statement_timeout', $1, true)";
      await tx.query({ name: "limit-statement-time", text, values: [`${msMax}ms`] });
      return read(tx);
    });
  } catch (error) {
    if (isWaitOver(error)) return "TOO_SLOW";
    throw error;
  }
}
