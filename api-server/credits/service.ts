import type { PoolClient } from "pg";

/** How many credits a key has, and how they come back. `remaining` null is unlimited. */
export interface CreditRow {
  readonly remaining: number;
  readonly refillAmount: number | null;
  readonly refillDay: number | null;
}

/**
 * Changes and reads the number of credits of a key, whose true value lives in a shared counter while it is being spent.
 */
export interface CreditService {
  /** The true remaining credits: the shared counter's where there is one, else the stored value. undefined: unlimited. */
  readRemaining(key: { workspaceId: string; keyId: string }): Promise<number | undefined>;
  /** Several at once, for lists; the map has no entry for an unlimited key. */
  readManyRemaining(workspaceId: string, keyIds: readonly string[]): Promise<Map<string, number>>;
  /**
   * Inside the caller's transaction: locks the row, suspends the shared counter, hands the true state to `change`, stores what it
   * returns (undefined: unlimited, the row goes) with a new `rev`. Call `settle` after the transaction has ended, either way.
   */
  change(
    tx: PoolClient,
    key: { workspaceId: string; keyId: string },
    change: (current: CreditRow | undefined) => CreditRow | undefined,
  ): Promise<CreditRow | undefined>;
  /** After commit or rollback: writes the shared counter anew from what is stored, which opens it again. */
  settle(key: { workspaceId: string; keyId: string }): Promise<void>;
  /** A spender found no counter: loads it from Postgres. */
  load(key: { workspaceId: string; keyId: string }): Promise<void>;
  /**
   * The same for a spender who waits for it: gives what `spend` gives, which runs before anybody can suspend the counter
   * again. undefined, and `spend` not run, when there is nothing to spend from: the key is unlimited or deleted by now.
   */
  loadAndSpend<T>(key: { workspaceId: string; keyId: string }, spend: () => Promise<T>): Promise<T | undefined>;
}
