import type { PoolClient } from "pg";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import type { CreditRow } from "../../credits/service.ts";
import type { Deps } from "../../deps.ts";
import { inTransaction } from "../../store/transaction.ts";

/** Changes credits: gets the exact state and returns the one to be stored; undefined means unlimited. */
export type ChangeCredits = (change: (current: CreditRow | undefined) => CreditRow | undefined) => Promise<void>;

/**
 * Runs a transaction that may change a key's credits, for which the shared counter is suspended; the counter is opened again after
 * commit or rollback. If opening fails, the next spender finds it suspended and requests a load, so that the
 * caller gets the result of the transaction and not this error.
 */
export async function inCreditsTransaction<T>(
  deps: Deps,
  key: { readonly workspaceId: string; readonly keyId: string },
  work: (tx: PoolClient, changeCredits: ChangeCredits) => Promise<T>,
): Promise<T> {
  let suspended = false;
  try {
    return await inTransaction(deps, (tx) =>
      work(tx, async (change) => {
        // Set first: from here on the counter may be suspended, even if the call fails.
        suspended = true;
        try {
          await deps.credits.change(tx, [key], change);
        } catch (error) {
          // Opening the counter would make the caller wait for the unreachable store a second time. If the store suspends the
          // counter later, the next spender gets it opened.
          if (error instanceof CountersUnavailable) suspended = false;
          throw error;
        }
      }),
    );
  } finally {
    if (suspended) await deps.credits.reopen([key]);
  }
}
