import type { PoolClient } from "pg";

/** How many credits a key has, and how they come back. */
export interface CreditRow {
  readonly remaining: number;
  readonly refillAmount: number | null;
  readonly refillDay: number | null;
}

export interface CreditKey {
  readonly workspaceId: string;
  readonly keyId: string;
}

/**
 * Changes and reads the number of credits of a key, whose true value lives in a shared counter while it is being spent.
 */
export interface CreditService {
  /** The true remaining credits: the shared counter's where there is one, else the stored value. undefined: unlimited. */
  readRemaining(key: CreditKey): Promise<number | undefined>;
  /** Several at once, for lists; the map has no entry for an unlimited key. */
  readManyRemaining(workspaceId: string, keyIds: readonly string[]): Promise<Map<string, number>>;
  /**
   * Inside the caller's transaction: locks the rows, suspends the shared counters, hands each true state to `change` (undefined:
   * unlimited), and stores what it returns (undefined: unlimited, the row goes) under a new `rev`. Call `settle` after the
   * transaction has ended, either way. Returns the keys that had counters: of the others, the next spender asks for one.
   */
  change<K extends CreditKey>(
    tx: PoolClient,
    keys: readonly K[],
    change: (current: CreditRow | undefined, key: K) => CreditRow | undefined,
  ): Promise<readonly K[]>;
  /**
   * After commit or rollback: writes the shared counters anew from what is stored, which opens them again. Never throws: a counter
   * that stays closed is logged, and opened when the next spender asks for it.
   */
  settle(keys: readonly CreditKey[]): Promise<void>;
  /** Spenders found no counters: loads them from Postgres, all or none. */
  load(keys: readonly CreditKey[]): Promise<void>;
  /**
   * The same for a spender who waits for it: returns what `spend` returns, which runs before anybody can suspend the counter
   * again. undefined, and `spend` not run, when there is nothing to spend from: the key is unlimited or deleted by now.
   */
  loadAndSpend<T>(key: CreditKey, spend: () => Promise<T>): Promise<T | undefined>;
}
