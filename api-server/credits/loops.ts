import type { Pool } from "pg";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import type { CreditRef, CreditStore } from "../../edge/credits/contract.ts";
import { isDatabaseUnavailable } from "../../postgres/failures.ts";
import type { RecordRejected, RunFairly } from "../background/workspace-turns.ts";
import { raiseSpent } from "../db/key-credits.ts";
import type { CreditService } from "./service.ts";

const BATCH = 500;

interface Round {
  readonly store: CreditStore;
  readonly runFairly: RunFairly;
  readonly recordRejection: RecordRejected;
  readonly workspaceIds: readonly string[];
}

/** Loads the credit counters that were missing when a process tried to spend from them. Returns true if more counters may be missing. */
export async function loadRequested({
  store,
  runFairly,
  recordRejection,
  workspaceIds,
  credits,
}: Round & { readonly credits: CreditService }): Promise<boolean> {
  return runFairly(await store.findAskingWorkspaces(workspaceIds), async (workspaceId) => {
    const { items, refused, isMore } = await store.takeLoadRequests(workspaceId, BATCH);
    recordRejection(workspaceId, { kind: "credit-loads", count: refused });
    if (items.length > 0) await loadAll(credits, items);
    return isMore;
  });
}

/**
 * Loads all counters in one transaction. If that fails for a reason that might affect only one of the counters, loads each one separately,
 * and throws the last failure, if any.
 */
async function loadAll(credits: CreditService, refs: readonly CreditRef[]): Promise<void> {
  try {
    await credits.load(refs);
  } catch (error) {
    if (refs.length === 1 || error instanceof CountersUnavailable || isDatabaseUnavailable(error)) throw error;
    let failure: unknown;
    for (const ref of refs) {
      await credits.load([ref]).catch((reason: unknown) => {
        failure = reason;
      });
    }
    if (failure !== undefined) throw failure;
  }
}

/**
 * Writes the credits spent in the Redis counters to Postgres. The dirty flag of a counter is cleared only after the commit, and only if the
 * counter has not changed in the meantime. Returns true if there may be more spent credits to write.
 */
export async function writeSpentBehind({
  store,
  runFairly,
  recordRejection,
  workspaceIds,
  db,
}: Round & { readonly db: Pool }): Promise<boolean> {
  return runFairly(await store.findDirtyWorkspaces(workspaceIds), async (workspaceId) => {
    const { items, refused, isMore } = await store.listDirty(workspaceId, BATCH);
    recordRejection(workspaceId, { kind: "credit-marks", count: refused });
    if (items.length > 0) {
      await raiseSpent(
        db,
        items.map(({ ref, counter }) => ({ ...ref, rev: counter.rev, spent: counter.spent })),
      );
      await store.clearDirty(items);
    }
    return isMore;
  });
}
