import type { Deps } from "../deps.ts";
import { countHolders, deleteSomeHoldings, type Held } from "../store/holders.ts";
import { inTransaction } from "../store/transaction.ts";

/** Links that are deleted in one transaction. */
const HOLDERS_PER_TRANSACTION = 2000;

/**
 * Takes something that is about to be deleted from the keys that hold it, when these are too many for the transaction that deletes
 * it: one over a million links would hold its locks and its snapshot for most of a minute. Should the caller not get to the end,
 * the keys that have lost it by then go without it, and the next call goes on from there.
 */
export async function takeFromManyHolders(
  deps: Pick<Deps, "db" | "projection" | "wakeRelay">,
  held: Held,
): Promise<void> {
  const max = HOLDERS_PER_TRANSACTION;
  if ((await countHolders(deps.db, { ...held, max: max + 1 })) <= max) return;
  while ((await inTransaction(deps, (tx) => deleteSomeHoldings(tx, { ...held, max }))) === max);
}
