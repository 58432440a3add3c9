import type { CreditCounter } from "./contract.ts";

export interface MemoryCredits extends CreditCounter {
  readonly open: boolean;
}

/** The credit counters of one process: `MemoryCreditStore` loads and reads them, `MemoryCounters` spends from them. */
export interface MemoryCreditCounters {
  readonly credits: Map<string, MemoryCredits>;
  /** Ids of the keys whose credits were spent, by workspace. */
  readonly dirty: Map<string, Set<string>>;
  /** Ids of the keys whose credits could not be spent because they had no counter, by workspace. */
  readonly toLoad: Map<string, Set<string>>;
}

export const creditsKey = (workspaceId: string, keyId: string): string => `${workspaceId}/${keyId}`;

export function mark(marks: Map<string, Set<string>>, workspaceId: string, keyId: string): void {
  const marked = marks.get(workspaceId);
  if (marked === undefined) marks.set(workspaceId, new Set([keyId]));
  else marked.add(keyId);
}
