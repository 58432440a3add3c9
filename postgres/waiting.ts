import type { Queryable } from "./queryable.ts";

export interface WaitingBounds {
  readonly lockMsMax: number;
  readonly statementMsMax: number;
  /** Maximum idle time between two statements: ends the transaction of a process that hangs. Default: unlimited. */
  readonly idleMsMax?: number;
}

/** Limits waiting for the rest of the transaction: a statement fails with `isWaitOver` if it waits longer for a lock, or runs longer. */
export async function limitWaiting(
  tx: Queryable,
  { lockMsMax, statementMsMax, idleMsMax = 0 }: WaitingBounds,
): Promise<void> {
  const text = `select set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
                       set_config('idle_in_transaction_session_timeout', $3, true)`;
  const values = [lockMsMax, statementMsMax, idleMsMax].map((ms) => `${ms}ms`);
  await tx.query({ name: "limit-waiting", text, values });
}
