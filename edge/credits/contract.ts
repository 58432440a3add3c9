import type { Closeable } from "../projection/contract.ts";

/*
 * The shared counter of a key's credits: {rev, granted, spent, open}. remaining = granted − spent. Spending is
 * `Counters.consume`; this is the side of the api-server, which alone creates, closes and replaces counters, always under
 * the row lock of `key_credits`. Postgres stays the source of truth: the counter is written behind, and reloaded from it.
 *
 * A workspace's pods write here too, by a user of their own that can write anything under the workspace's prefix. So what is
 * read is checked: a counter of anything but whole numbers is as good as none, and is written anew by the next load.
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

/** What was found of one workspace. */
export interface Found<T> {
  readonly items: readonly T[];
  /** How much else lay there: ids that cannot be ours, or something of another type. It was removed. */
  readonly refused: number;
  /** Whether there is more than was asked for. */
  readonly isMore: boolean;
}

/** Methods for many do all in one round trip where one connection takes them all. All throw when the store is away. */
export interface CreditStore extends Closeable {
  /** Creates the counters; the same rev reopens one and keeps the greater `spent`; a higher rev replaces it; a lower one is refused. */
  load(counted: readonly CountedKey[]): Promise<void>;
  /** Stops spending and returns the true counters, in order, undefined where the store has none. Idempotent. */
  suspend(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>>;
  /** In order, undefined where the store has none. */
  read(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>>;
  /** The keys are unlimited or deleted now. */
  remove(refs: readonly CreditRef[]): Promise<void>;
  /** Which of these workspaces have counters that were spent from since their marks were cleared. One question for all. */
  findDirtyWorkspaces(workspaceIds: readonly string[]): Promise<string[]>;
  /** Counters spent from since their mark was last cleared, up to `max`, each as it is to be given to `clearDirty`. */
  listDirty(workspaceId: string, max: number): Promise<Found<CountedKey>>;
  /** Removes the marks of those counters that still have this `spent` and `rev`. */
  clearDirty(seen: readonly CountedKey[]): Promise<void>;
  /**
   * Closes every counter of every workspace: the store has gone back in time, so that each must be loaded anew before it is
   * spent from. Loading keeps the greater `spent`, so that nothing is given twice that Postgres knows to be spent.
   */
  closeAll(): Promise<void>;
  /** In which of these workspaces a spender found no open counter. One question for all. */
  findAskingWorkspaces(workspaceIds: readonly string[]): Promise<string[]>;
  /** Keys for which a spender found no open counter since the last call. */
  takeLoadRequests(workspaceId: string, max: number): Promise<Found<CreditRef>>;
}
