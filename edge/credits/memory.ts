import type { CountedKey, CreditCounter, CreditRef, CreditStore, Found } from "./contract.ts";
import { creditsKey, type MemoryCreditCounters, type MemoryCredits } from "./memory-counters.ts";

/** Credit counters of one process. `MemoryCounters` with the same store spends from them. */
export class MemoryCreditStore implements CreditStore {
  readonly #store: MemoryCreditCounters;

  constructor(store: MemoryCreditCounters) {
    this.#store = store;
  }

  async load(counted: readonly CountedKey[]): Promise<void> {
    for (const { ref, counter } of counted) {
      const { rev, granted, spent } = counter;
      const key = creditsKey(ref.workspaceId, ref.keyId);
      const known = this.#store.credits.get(key);
      if (known !== undefined && known.rev > rev) continue;
      const kept = known !== undefined && known.rev === rev ? Math.max(known.spent, spent) : spent;
      this.#store.credits.set(key, { rev, granted, spent: kept, open: true });
    }
  }

  async suspend(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>> {
    return refs.map(({ workspaceId, keyId }) => {
      const key = creditsKey(workspaceId, keyId);
      const known = this.#store.credits.get(key);
      if (known !== undefined) this.#store.credits.set(key, { ...known, open: false });
      return known && withoutState(known);
    });
  }

  async read(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>> {
    return refs.map((ref) => this.#find(ref));
  }

  async remove(refs: readonly CreditRef[]): Promise<void> {
    for (const { workspaceId, keyId } of refs) {
      this.#store.credits.delete(creditsKey(workspaceId, keyId));
      this.#store.dirty.get(workspaceId)?.delete(keyId);
    }
  }

  async findDirtyWorkspaces(workspaceIds: readonly string[]): Promise<string[]> {
    return workspaceIds.filter((id) => (this.#store.dirty.get(id)?.size ?? 0) > 0);
  }

  async listDirty(workspaceId: string, max: number): Promise<Found<CountedKey>> {
    const items: CountedKey[] = [];
    let isMore = false;
    for (const keyId of this.#store.dirty.get(workspaceId) ?? []) {
      isMore = items.length >= max;
      if (isMore) break;
      const ref = { workspaceId, keyId };
      const counter = this.#find(ref);
      if (counter !== undefined) items.push({ ref, counter });
    }
    return { items, refused: 0, isMore };
  }

  async clearDirty(seen: readonly CountedKey[]): Promise<void> {
    for (const { ref, counter: was } of seen) {
      const counter = this.#find(ref);
      const isUnchanged = counter === undefined || (counter.rev === was.rev && counter.spent === was.spent);
      if (isUnchanged) this.#store.dirty.get(ref.workspaceId)?.delete(ref.keyId);
    }
  }

  async closeAll(): Promise<void> {
    for (const [key, counter] of this.#store.credits) this.#store.credits.set(key, { ...counter, open: false });
  }

  async findAskingWorkspaces(workspaceIds: readonly string[]): Promise<string[]> {
    return workspaceIds.filter((id) => (this.#store.toLoad.get(id)?.size ?? 0) > 0);
  }

  async takeLoadRequests(workspaceId: string, max: number): Promise<Found<CreditRef>> {
    const asked = this.#store.toLoad.get(workspaceId) ?? new Set<string>();
    const taken = [...asked].slice(0, max);
    for (const keyId of taken) asked.delete(keyId);
    return { items: taken.map((keyId) => ({ workspaceId, keyId })), refused: 0, isMore: asked.size > 0 };
  }

  async close(): Promise<void> {}

  #find({ workspaceId, keyId }: CreditRef): CreditCounter | undefined {
    const known = this.#store.credits.get(creditsKey(workspaceId, keyId));
    return known && withoutState(known);
  }
}

const withoutState = ({ rev, granted, spent }: MemoryCredits): CreditCounter => ({ rev, granted, spent });
