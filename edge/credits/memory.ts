import { creditsKey, type MemoryCredits, type MemoryStore } from "../counters/memory.ts";
import type { CreditCounter, CreditRef, CreditStore } from "./contract.ts";

/** The credit counters of one process; `MemoryCounters` over the same store spends from them. */
export class MemoryCreditStore implements CreditStore {
  readonly #store: MemoryStore;

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  async load({ workspaceId, keyId }: CreditRef, { rev, granted, spent }: CreditCounter): Promise<void> {
    const key = creditsKey(workspaceId, keyId);
    const known = this.#store.credits.get(key);
    if (known !== undefined && known.rev > rev) return;
    const kept = known !== undefined && known.rev === rev ? Math.max(known.spent, spent) : spent;
    this.#store.credits.set(key, { rev, granted, spent: kept, open: true });
  }

  async suspend(ref: CreditRef): Promise<CreditCounter | undefined> {
    const key = creditsKey(ref.workspaceId, ref.keyId);
    const known = this.#store.credits.get(key);
    if (known === undefined) return undefined;
    this.#store.credits.set(key, { ...known, open: false });
    return withoutState(known);
  }

  async read(ref: CreditRef): Promise<CreditCounter | undefined> {
    const known = this.#store.credits.get(creditsKey(ref.workspaceId, ref.keyId));
    return known === undefined ? undefined : withoutState(known);
  }

  async remove({ workspaceId, keyId }: CreditRef): Promise<void> {
    this.#store.credits.delete(creditsKey(workspaceId, keyId));
    this.#store.dirty.get(workspaceId)?.delete(keyId);
  }

  async listDirty(workspaceId: string, max: number): Promise<Array<{ ref: CreditRef; counter: CreditCounter }>> {
    const listed: Array<{ ref: CreditRef; counter: CreditCounter }> = [];
    for (const keyId of this.#store.dirty.get(workspaceId) ?? []) {
      if (listed.length >= max) break;
      const ref = { workspaceId, keyId };
      const counter = await this.read(ref);
      if (counter !== undefined) listed.push({ ref, counter });
    }
    return listed;
  }

  async clearDirty(ref: CreditRef, seen: CreditCounter): Promise<void> {
    const counter = await this.read(ref);
    const isUnchanged = counter === undefined || (counter.rev === seen.rev && counter.spent === seen.spent);
    if (isUnchanged) this.#store.dirty.get(ref.workspaceId)?.delete(ref.keyId);
  }

  async closeAll(workspaceId: string): Promise<void> {
    for (const [key, counter] of this.#store.credits) {
      if (key.startsWith(`${workspaceId}/`)) this.#store.credits.set(key, { ...counter, open: false });
    }
  }

  async takeLoadRequests(workspaceId: string, max: number): Promise<CreditRef[]> {
    const asked = this.#store.toLoad.get(workspaceId);
    const taken = [...(asked ?? [])].slice(0, max);
    for (const keyId of taken) asked?.delete(keyId);
    return taken.map((keyId) => ({ workspaceId, keyId }));
  }

  async close(): Promise<void> {}
}

const withoutState = ({ rev, granted, spent }: MemoryCredits): CreditCounter => ({ rev, granted, spent });
