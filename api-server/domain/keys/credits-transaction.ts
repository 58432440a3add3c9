import type { PoolClient } from "pg";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import type { CreditRow } from "../../credits/service.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { CreditsDeps } from "../deps.ts";

/** Function that changes credits: receives the exact current state and returns the state to store. `undefined` means unlimited. */
export type ChangeCredits = (change: (current: CreditRow | undefined) => CreditRow | undefined) => Promise<void>;

/**
 * Runs a transaction that may change a key's credits. The Redis counter is suspended during the transaction, and reopened after commit or
 * rollback. The caller gets the result of the transaction even if reopening fails: the next call that spends credits finds the counter
 * suspended and requests a reload. If the work joins an enclosing transaction, the counter is reopened after that transaction has ended.
 */
export async function inCreditsTransaction<T>(
  deps: CreditsDeps,
  key: { readonly workspaceId: string; readonly keyId: string },
  work: (tx: PoolClient, changeCredits: ChangeCredits) => Promise<T>,
): Promise<T> {
  let suspended = false;
  try {
    return await inTransaction(deps, (tx) =>
      work(tx, async (change) => {
        // Sets the flag before the call, because even a failed call may have suspended the counter.
        suspended = true;
        try {
          await deps.credits.change(tx, [key], change);
        } catch (error) {
          // Does not call `reopen`, which would wait for the unreachable Redis again. If Redis executes the suspension late, the next call
          // that spends credits requests a reload.
          if (error instanceof CountersUnavailable) suspended = false;
          throw error;
        }
      }),
    );
  } finally {
    if (suspended && deps.joined !== undefined) deps.joined.afterwards(() => deps.credits.reopen([key]));
    else if (suspended) await deps.credits.reopen([key]);
  }
}
