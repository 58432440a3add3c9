import type { Closeable } from "../projection/contract.ts";

/*
 * The shared counter of a key's credits: {rev, granted, spent, open}. remaining = granted − spent. Spending is
 * `Counters.consume`; this is the side of the api-server, which alone creates, closes and replaces counters, always under
 * the row lock of `key_credits`. Postgres stays the source of truth: the counter is written behind, and reloaded from it.
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

export interface CreditStore extends Closeable {
  /** Creates the counter; the same rev reopens it and keeps the greater `spent`; a higher rev replaces it; a lower one is refused. */
  load(ref: CreditRef, counter: CreditCounter): Promise<void>;
  /** Stops spending and returns the true counter, undefined when the store has none. Idempotent. */
  suspend(ref: CreditRef): Promise<CreditCounter | undefined>;
  read(ref: CreditRef): Promise<CreditCounter | undefined>;
  /** The key is unlimited or deleted now. */
  remove(ref: CreditRef): Promise<void>;
  /** Counters spent from since their mark was last cleared, up to `max`, each with a token for `clearDirty`. */
  listDirty(workspaceId: string, max: number): Promise<Array<{ ref: CreditRef; counter: CreditCounter }>>;
  /** Removes the mark only if the counter still has this `spent` and `rev`. */
  clearDirty(ref: CreditRef, seen: CreditCounter): Promise<void>;
  /**
   * Closes every counter of the workspace: the store has gone back in time, so that each must be loaded anew before it is
   * spent from. Loading keeps the greater `spent`, so that nothing is given twice that Postgres knows to be spent.
   */
  closeAll(workspaceId: string): Promise<void>;
  /** Keys for which a spender found no open counter since the last call. */
  takeLoadRequests(workspaceId: string, max: number): Promise<CreditRef[]>;
}
