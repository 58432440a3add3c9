import type { Closeable } from "../closeable.ts";

/*
 * The shared counter of a key's credits: {rev, granted, spent, open}. remaining = granted − spent. `Counters.consume` spends; this is the
 * api-server's side, which alone creates, closes and replaces counters, always under the row lock of `key_credits`. Postgres is the source
 * of truth: spent credits are written to it in the background, and counters are reloaded from it.
 *
 * Gates of a workspace write here too, with a user that can write any value under the workspace's prefix. So values are validated: a
 * counter that does not hold integers counts as missing, and the next load replaces it.
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

/** Results for one workspace. */
export interface Found<T> {
  readonly items: readonly T[];
  /** Number of removed members: invalid ids, or keys of another type. */
  readonly refused: number;
  /** Whether more members exist than were requested. */
  readonly isMore: boolean;
}

/** Methods for many counters use one round trip where one connection serves them all. All throw if the store is unreachable. */
export interface CreditStore extends Closeable {
  /**
   * Creates the counters. With the same rev a counter is reopened and keeps the greater `spent`; a higher rev replaces it; a lower rev is
   * rejected.
   */
  load(counted: readonly CountedKey[]): Promise<void>;
  /** Stops spending and returns the exact counters, in order; `undefined` for each that the store does not have. Idempotent. */
  suspend(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>>;
  /** Returns the counters, in order; `undefined` for each that the store does not have. */
  read(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>>;
  /** Removes the counters of keys that are now unlimited or deleted. */
  remove(refs: readonly CreditRef[]): Promise<void>;
  /** Returns which of these workspaces have dirty counters, from which credits were spent since they were cleared. One call for all. */
  findDirtyWorkspaces(workspaceIds: readonly string[]): Promise<string[]>;
  /** Returns up to `max` dirty counters, in the form that `clearDirty` takes. */
  listDirty(workspaceId: string, max: number): Promise<Found<CountedKey>>;
  /** Clears those dirty counters whose `spent` and `rev` are unchanged. */
  clearDirty(seen: readonly CountedKey[]): Promise<void>;
  /**
   * Closes every counter of every workspace, because the store was rolled back: each must be loaded again before credits are spent from it.
   * Loading keeps the greater `spent`, so that credits which Postgres records as spent are not granted again.
   */
  closeAll(): Promise<void>;
  /** Returns the workspaces in which a spender found no open counter. One call for all. */
  findAskingWorkspaces(workspaceIds: readonly string[]): Promise<string[]>;
  /** Returns and removes keys for which a spender found no open counter since the last call. */
  takeLoadRequests(workspaceId: string, max: number): Promise<Found<CreditRef>>;
}
