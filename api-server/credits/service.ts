import type { PoolClient } from "pg";
import type { Queryable } from "../../postgres/queryable.ts";

/** Credits and refill of a key. */
export interface CreditRow {
  readonly remaining: number;
  readonly refillAmount: number | null;
  readonly refillDay: number | null;
}

export interface CreditKey {
  readonly workspaceId: string;
  readonly keyId: string;
}

/** Changes and reads the credits of a key. While credits are being spent, the exact balance is in a Redis counter. */
export interface CreditService {
  /** Returns the exact remaining credits: from the Redis counter if there is one, otherwise from the row. `undefined` if unlimited. */
  readRemaining(key: CreditKey): Promise<number | undefined>;
  /** Like `readRemaining`, but rejects with `CountersUnavailable` if Redis does not respond, instead of using the row. */
  readSharedRemaining(key: CreditKey): Promise<number | undefined>;
  /**
   * Returns the remaining credits of several keys, like `readRemaining`. The map has no entry for an unlimited key. In a transaction, pass
   * the transaction's connection as `db`, because a second connection per call could exhaust the pool.
   */
  readManyRemaining(db: Queryable, workspaceId: string, keyIds: readonly string[]): Promise<Map<string, number>>;
  /**
   * Runs inside the caller's transaction: locks the rows, suspends the Redis counters, passes each exact state to `change`, and stores the
   * returned state under a new `rev`. A state of `undefined` means unlimited, for which the row is deleted. After the transaction has been
   * committed or rolled back, call `reopen`. Returns the keys that had counters. For all other keys, the next call that spends credits
   * requests a counter.
   */
  change<K extends CreditKey>(
    tx: PoolClient,
    keys: readonly K[],
    change: (current: CreditRow | undefined, key: K) => CreditRow | undefined,
  ): Promise<readonly K[]>;
  /**
   * Rewrites the Redis counters from the rows, and thereby opens them. Call it after commit or rollback. Never throws: a counter that stays
   * closed is logged, and is opened once a call that spends credits requests it.
   */
  reopen(keys: readonly CreditKey[]): Promise<void>;
  /**
   * Loads the given counters from Postgres into Redis, either all of them or none. These are counters that were missing in Redis when a
   * call tried to spend credits.
   */
  load(keys: readonly CreditKey[]): Promise<void>;
  /**
   * Loads the counter for a caller that waits to spend credits, runs `spend` before the counter can be suspended again, and returns the
   * result of `spend`. If the key was deleted or has become unlimited, returns `undefined` without running `spend`.
   */
  loadAndSpend<T>(key: CreditKey, spend: () => Promise<T>): Promise<T | undefined>;
}
