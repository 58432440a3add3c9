import type { PoolClient } from "pg";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import type { CreditRow } from "../../credits/service.ts";
import type { Deps } from "../../deps.ts";
import { inTransaction } from "../../store/transaction.ts";

/** Changes credits: gets the exact state and returns the one to be stored; undefined means unlimited. */
export type ChangeCredits = (change: (current: CreditRow | undefined) => CreditRow | undefined) => Promise<void>;

/**
 * A transaction that may change a key's credits, for which the shared counter is suspended; it is opened again when the
 * transaction has ended, either way. Should that fail, the next spender finds it suspended and has it loaded, so that the
 * caller is told how the transaction ended and not this.
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
        // Noted first: from here on the counter may be suspended, whatever else happens.
        suspended = true;
        try {
          await deps.credits.change(tx, [key], change);
        } catch (error) {
          // A store that does not answer now would keep the caller waiting a second time. A counter that it suspends later is
          // opened when the next spender asks for it.
          if (error instanceof CountersUnavailable) suspended = false;
          throw error;
        }
      }),
    );
  } finally {
    if (suspended) await deps.credits.reopen([key]);
  }
}
