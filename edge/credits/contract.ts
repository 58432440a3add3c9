import type { Closeable } from "../closeable.ts";

/*
 * The shared counter of a key's credits: {rev, granted, spent, open}. remaining = granted − spent. `Counters.consume` spends; this is
 * the side of the api-server, which alone creates, closes and replaces counters, always under the row lock of `key_credits`.
 * Postgres stays the source of truth: what was spent is written to it in the background, and counters are reloaded from it.
 *
 * A workspace's pods write here too, with a user that can write anything under the workspace's prefix. So what is read is checked:
 * a counter that does not hold whole numbers counts as missing, and the next load replaces it.
 */
export interface CreditCounter {
  readonly rev: number;
  readonly granted: number;
  readonly spent: number;
}

export interface CreditRef {
  readonly workspaceId: string;
  readonly keyId: string;
}

export interface CountedKey {
  readonly ref: CreditRef;
  readonly counter: CreditCounter;
}

/** What was found for one workspace. */
export interface Found<T> {
  readonly items: readonly T[];
  /** How many members were removed: ids that cannot be valid, or keys of another type. */
  readonly refused: number;
  /** Whether there are more than were requested. */
  readonly isMore: boolean;
}

/** Methods for many counters use one round trip where one connection serves them all. All throw when the store is unreachable. */
export interface CreditStore extends Closeable {
  /**
   * Creates the counters. With the same rev a counter is opened again and keeps the greater `spent`; a higher rev replaces it; a
   * lower rev is refused.
   */
  load(counted: readonly CountedKey[]): Promise<void>;
  /** Stops spending and returns the exact counters, in order; undefined where the store has none. Idempotent. */
  suspend(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>>;
  /** In order, undefined where the store has none. */
  read(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>>;
  /** For keys that are unlimited or deleted now. */
  remove(refs: readonly CreditRef[]): Promise<void>;
  /** Returns which of these workspaces have counters that were spent from since their marks were cleared. One call for all. */
  findDirtyWorkspaces(workspaceIds: readonly string[]): Promise<string[]>;
  /** Returns up to `max` counters that were spent from since their marks were cleared, each as `clearDirty` needs it. */
  listDirty(workspaceId: string, max: number): Promise<Found<CountedKey>>;
  /** Removes the marks of those counters whose `spent` and `rev` are still the same. */
  clearDirty(seen: readonly CountedKey[]): Promise<void>;
  /**
   * Closes every counter of every workspace, because the store has gone back in time: each must be loaded again before it is spent
   * from. Loading keeps the greater `spent`, so that credits which Postgres knows to be spent are not granted again.
   */
  closeAll(): Promise<void>;
  /** Returns the workspaces in which a spender found no open counter. One call for all. */
  findAskingWorkspaces(workspaceIds: readonly string[]): Promise<string[]>;
  /** Returns and removes keys for which a spender found no open counter since the last call. */
  takeLoadRequests(workspaceId: string, max: number): Promise<Found<CreditRef>>;
}
