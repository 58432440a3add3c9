import type { Pool } from "pg";
import type { CreditStore } from "../../edge/credits/contract.ts";
import { raiseSpent } from "../store/key-credits.ts";
import type { CreditService } from "./service.ts";

const BATCH = 500;

/** Loads the counters that spenders found missing. Gives true when there may be more. */
export async function loadRequested(deps: {
  store: CreditStore;
  credits: CreditService;
  workspaceIds: readonly string[];
}): Promise<boolean> {
  const taken = await Promise.all(deps.workspaceIds.map((id) => deps.store.takeLoadRequests(id, BATCH)));
  for (const ref of taken.flat()) await deps.credits.load(ref);
  return taken.some((refs) => refs.length === BATCH);
}

/**
 * Writes to Postgres what was spent in the shared counters. A mark is cleared only after the commit, and only if the
 * counter has not moved on. Gives true when there may be more.
 */
export async function writeSpentBehind(deps: {
  db: Pool;
  store: CreditStore;
  workspaceIds: readonly string[];
}): Promise<boolean> {
  let isMore = false;
  for (const workspaceId of deps.workspaceIds) {
    const dirty = await deps.store.listDirty(workspaceId, BATCH);
    if (dirty.length === 0) continue;
    await raiseSpent(
      deps.db,
      dirty.map(({ ref, counter }) => ({ ...ref, rev: counter.rev, spent: counter.spent })),
    );
    await Promise.all(dirty.map(({ ref, counter }) => deps.store.clearDirty(ref, counter)));
    isMore ||= dirty.length === BATCH;
  }
  return isMore;
}
