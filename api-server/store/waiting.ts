import type { Queryable } from "./queryable.ts";

/** For the rest of the transaction: a statement fails with `isWaitOver` when it waits longer for a lock, or runs longer. */
export async function limitWaiting(
  tx: Queryable,
  { lockMsMax, statementMsMax }: { lockMsMax: number; statementMsMax: number },
): Promise<void> {
  const text = "select set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)";
  await tx.query({ name: "limit-waiting", text, values: [`${lockMsMax}ms`, `${statementMsMax}ms`] });
}
