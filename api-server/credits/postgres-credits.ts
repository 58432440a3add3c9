import type { Pool, PoolClient } from "pg";
import type { Logger } from "pino";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import type { CreditStore } from "../../edge/credits/contract.ts";
import { utcDate } from "../domain/credits.ts";
import {
  deleteKeyCredits,
  holdKey,
  isKeyLive,
  type KeyCreditsRow,
  type KeyRef,
  listKeyCredits,
  lockKeyCredits,
  putKeyCredits,
} from "../store/key-credits.ts";
import { inUnmarkedTransaction } from "../store/unmarked-transaction.ts";
import type { CreditRow, CreditService } from "./service.ts";

/*
 * The number of a key's credits lives in the shared counter while it is being spent, and in Postgres for good. Whoever changes
 * or loads it holds the lock of its row, so that these never overlap:
 *
 *   change: lock ─ suspend the counter, which tells what was truly spent ─ write the row under a new rev ─ commit ─ settle
 *   load:   lock ─ write the counter from the row ─ spend from it, when a spender waits ─ unlock
 *
 * Between `suspend` and `settle` nobody spends. A process that dies in between leaves the counter suspended; the next spender
 * asks for a load, which opens it again.
 */
export function createCreditService(deps: {
  db: Pool;
  store: CreditStore;
  nowMs: () => number;
  log: Pick<Logger, "warn">;
}): CreditService {
  const { db, store, nowMs, log } = deps;

  async function loadAndSpend<T>(key: KeyRef, spend: () => Promise<T>): Promise<T | undefined> {
    let spent: T | undefined;
    await inUnmarkedTransaction(db, async (tx) => {
      const row = await lockOrHold(tx, key);
      // Asked under the lock: a key that was deleted while we waited for it must not get its counter back.
      const isLive = row !== undefined && (await isKeyLive(tx, key));
      if (!isLive) return store.remove(key).catch(unavailable);
      await store.load(key, row).catch(unavailable);
      spent = await spend();
    });
    return spent;
  }

  const load = (key: KeyRef): Promise<void> => loadAndSpend(key, async () => undefined);

  return {
    async readRemaining(key) {
      return (await this.readManyRemaining(key.workspaceId, [key.keyId])).get(key.keyId);
    },

    async readManyRemaining(workspaceId, keyIds) {
      const rows = await listKeyCredits(db, { workspaceId, keyIds });
      const remaining = await Promise.all(rows.map((row) => trueRemaining(store, row)));
      return new Map(rows.map((row, index) => [row.key_id, remaining[index] ?? 0]));
    },

    async change(tx: PoolClient, key, change) {
      const row = await lockKeyCredits(tx, key);
      const counter = await store.suspend(key).catch(unavailable);
      const isSameGrant = row !== undefined && counter?.rev === row.rev;
      const spent = row === undefined ? 0 : Math.max(row.spent, isSameGrant ? counter.spent : 0);
      const next = change(row === undefined ? undefined : toCredits(row, spent));
      if (next === undefined) {
        if (row !== undefined) await deleteKeyCredits(tx, key);
      } else {
        const { remaining: granted, refillAmount, refillDay } = next;
        await putKeyCredits(tx, { ...key, granted, refillAmount, refillDay, today: utcDate(nowMs()) });
      }
      return next;
    },

    async settle(key) {
      try {
        await load(key);
      } catch (error) {
        // The change is committed, or undone for a reason of its own, and that is what the caller has to hear. The counter
        // stays suspended until the next spender asks for it.
        log.warn({ err: error, ...key }, "a credit counter stays closed until it is asked for");
      }
    },

    load,

    loadAndSpend,
  };
}

/**
 * The locked credits of a key. Where there are none, there is no row to lock: the key itself is held then, so that whoever
 * gives it credits waits until the counter of its former ones is gone, and never has its own one removed instead.
 */
async function lockOrHold(tx: PoolClient, key: KeyRef): Promise<KeyCreditsRow | undefined> {
  const row = await lockKeyCredits(tx, key);
  if (row !== undefined) return row;
  await holdKey(tx, key);
  return lockKeyCredits(tx, key);
}

/** The caller hears that the service is away, not that something unexpected happened. */
function unavailable(cause: unknown): never {
  throw new CountersUnavailable("a key's credit counter cannot be reached", { cause });
}

function toCredits(row: KeyCreditsRow, spent: number): CreditRow {
  return { remaining: row.granted - spent, refillAmount: row.refill_amount, refillDay: row.refill_day };
}

/** The counter knows better than the row, if it is of the same grant. Without the shared store the row stands. */
async function trueRemaining(store: CreditStore, row: KeyCreditsRow): Promise<number> {
  const counter = await store.read({ workspaceId: row.workspace_id, keyId: row.key_id }).catch(() => undefined);
  const spent = counter?.rev === row.rev ? Math.max(row.spent, counter.spent) : row.spent;
  return row.granted - spent;
}
