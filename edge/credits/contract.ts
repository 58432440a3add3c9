import type { Closeable } from "../closeable.ts";

/*
 * The shared counter of a key's credits: {rev, granted, spent, open}. remaining = granted − spent. `Counters.consume` spends credits. This
 * interface is for the api-server: only the api-server creates, closes and replaces counters, and it always holds the row lock of
 * `key_credits` meanwhile. Postgres is the source of truth: spent credits are written to Postgres in the background, and counters are
 * reloaded from it.
 *
 * Gates of a workspace also write to these counters, with a Redis user that can write any value under the workspace's prefix. So values are
 * validated: a counter that does not hold integers counts as missing, and the next load replaces it.
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

/**
 * Credit counters. A method that takes several counters needs one round trip if all of them are on one connection. All methods throw if the
 * store is unreachable.
 */
export interface CreditStore extends Closeable {
  /**
   * Creates the counters. An existing counter with the same `rev` is reopened and keeps the greater `spent`. A higher `rev` replaces the
   * counter, and a lower one is rejected.
   */
  load(counted: readonly CountedKey[]): Promise<void>;
  /**
   * Closes the counters, so that nothing more is spent, and returns their exact values in order; `undefined` for each counter that the
   * store does not have. Idempotent.
   */
  suspend(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>>;
  /** Returns the counters, in order; `undefined` for each counter that the store does not have. */
  read(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>>;
  /** Removes the counters of keys that were deleted or no longer have a credit limit. */
  remove(refs: readonly CreditRef[]): Promise<void>;
  /**
   * Returns those of the given workspaces that have dirty counters. A counter is dirty if credits have been spent from it since it was last
   * cleared. Takes one round trip.
   */
  findDirtyWorkspaces(workspaceIds: readonly string[]): Promise<string[]>;
  /** Returns up to `max` dirty counters, as input for `clearDirty`. */
  listDirty(workspaceId: string, max: number): Promise<Found<CountedKey>>;
  /** Clears dirty counters, except those whose `spent` or `rev` has changed since. */
  clearDirty(seen: readonly CountedKey[]): Promise<void>;
  /**
   * Closes every counter of every workspace after the store was rolled back, so that each is loaded again before credits are spent. Loading
   * keeps the greater `spent`, so credits that Postgres records as spent are not granted again.
   */
  closeAll(): Promise<void>;
  /** Returns those of the given workspaces in which a caller tried to spend credits without an open counter. Takes one round trip. */
  findAskingWorkspaces(workspaceIds: readonly string[]): Promise<string[]>;
  /** Returns the keys whose credits could not be spent because their counters were not open, and forgets them. */
  takeLoadRequests(workspaceId: string, max: number): Promise<Found<CreditRef>>;
}
