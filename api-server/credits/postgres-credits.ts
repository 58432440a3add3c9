import type { Pool, PoolClient } from "pg";
import type { Logger } from "pino";
import { utcDate } from "../../core/utc-date.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import type { CountedKey, CreditCounter, CreditStore } from "../../edge/credits/contract.ts";
import {
  deleteKeyCredits,
  holdKeys,
  type KeyCreditsRow,
  listKeyCredits,
  listLiveKeys,
  lockKeyCredits,
  type NewKeyCredits,
  putKeyCredits,
} from "../store/key-credits.ts";
import { inUnmarkedTransaction } from "../store/unmarked-transaction.ts";
import type { CreditKey, CreditRow, CreditService } from "./service.ts";

/*
 * The number of a key's credits lives in the shared counter while it is being spent, and in Postgres for good. Whoever changes
 * or loads it holds the lock of its row, so that these never overlap:
 *
 *   change: lock ─ suspend the counter, which tells what was truly spent ─ write the row under a new rev ─ commit ─ settle
 *   load:   lock ─ write the counter from the row ─ spend from it, when a spender waits ─ unlock
 *
 * Between `suspend` and `settle` nobody spends. A process that dies in between leaves the counter suspended; the next spender
 * asks for a load, which opens it again. Of several keys, the rows are locked in the order of their ids.
 */
export function createCreditService(deps: {
  db: Pool;
  store: CreditStore;
  nowMs: () => number;
  log: Pick<Logger, "warn">;
}): CreditService {
  const { db, store, nowMs, log } = deps;

  /** Runs `spend` under the locks, when all of the keys have counters to spend from. */
  async function loadAll<T>(keys: readonly CreditKey[], spend: () => Promise<T>): Promise<T | undefined> {
    let spent: T | undefined;
    await inUnmarkedTransaction(db, async (tx) => {
      const rows = byKeyId(await lockOrHold(tx, keys));
      // Asked under the lock: a key that was deleted while we waited for it must not get its counter back.
      const live = await listLiveKeys(tx, keys);
      const counted: CountedKey[] = [];
      const gone: CreditKey[] = [];
      for (const ref of keys) {
        const row = rows.get(ref.keyId);
        if (row !== undefined && live.has(ref.keyId)) counted.push({ ref, counter: row });
        else gone.push(ref);
      }
      if (gone.length > 0) await store.remove(gone).catch(unavailable);
      if (counted.length > 0) await store.load(counted).catch(unavailable);
      if (gone.length === 0) spent = await spend();
    });
    return spent;
  }

  const load = (keys: readonly CreditKey[]): Promise<void> => loadAll(keys, async () => undefined);

  return {
    async readRemaining(key) {
      return (await this.readManyRemaining(key.workspaceId, [key.keyId])).get(key.keyId);
    },

    async readManyRemaining(workspaceId, keyIds) {
      const rows = await listKeyCredits(db, { workspaceId, keyIds });
      // Without the shared store the rows stand.
      const counters = await store.read(rows.map(toRef)).catch(() => []);
      return new Map(rows.map((row, i) => [row.key_id, row.granted - trueSpent(row, counters[i])]));
    },

    async change(tx, keys, change) {
      const rows = byKeyId(await lockKeyCredits(tx, keys));
      const counters = await store.suspend(keys).catch(unavailable);
      const put: NewKeyCredits[] = [];
      const unlimited: CreditKey[] = [];
      for (const [i, key] of keys.entries()) {
        const row = rows.get(key.keyId);
        const next = change(row && toCredits(row, trueSpent(row, counters[i])), key);
        const { workspaceId, keyId } = key;
        if (next === undefined) {
          if (row !== undefined) unlimited.push(key);
        } else {
          const { remaining: granted, refillAmount, refillDay } = next;
          put.push({ workspaceId, keyId, granted, refillAmount, refillDay });
        }
      }
      if (unlimited.length > 0) await deleteKeyCredits(tx, unlimited);
      if (put.length > 0) await putKeyCredits(tx, { credits: put, today: utcDate(nowMs()) });
      return keys.filter((_, i) => counters[i] !== undefined);
    },

    async settle(keys) {
      try {
        await load(keys);
      } catch (error) {
        // The change is committed, or undone for a reason of its own, and that is what the caller has to hear.
        const [first] = keys;
        log.warn({ err: error, ...first, keys: keys.length }, "credit counters stay closed until they are asked for");
      }
    },

    load,

    loadAndSpend: (key, spend) => loadAll([key], spend),
  };
}

const byKeyId = (rows: readonly KeyCreditsRow[]) => new Map(rows.map((row) => [row.key_id, row]));

const toRef = (row: KeyCreditsRow): CreditKey => ({ workspaceId: row.workspace_id, keyId: row.key_id });

/**
 * The locked credits of keys. Where a key has none, there is no row to lock: the key itself is held then, so that whoever
 * gives it credits waits until the counter of its former ones is gone, and never has its own one removed instead.
 */
async function lockOrHold(tx: PoolClient, keys: readonly CreditKey[]): Promise<KeyCreditsRow[]> {
  const rows = await lockKeyCredits(tx, keys);
  if (rows.length === keys.length) return rows;
  const locked = byKeyId(rows);
  const missing = keys.filter(({ keyId }) => !locked.has(keyId));
  await holdKeys(tx, missing);
  return [...rows, ...(await lockKeyCredits(tx, missing))];
}

/** The caller hears that the service is away, not that something unexpected happened. */
function unavailable(cause: unknown): never {
  throw new CountersUnavailable("a key's credit counter cannot be reached", { cause });
}

function toCredits(row: KeyCreditsRow, spent: number): CreditRow {
  return { remaining: row.granted - spent, refillAmount: row.refill_amount, refillDay: row.refill_day };
}

/** The counter knows better than the row, if it is of the same grant; never more than was granted. */
function trueSpent(row: KeyCreditsRow, counter: CreditCounter | undefined): number {
  const counted = counter?.rev === row.rev ? counter.spent : 0;
  return Math.min(row.granted, Math.max(row.spent, counted));
}
