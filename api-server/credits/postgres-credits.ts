import type { Pool, PoolClient } from "pg";
import type { Logger } from "pino";
import { utcDate } from "../../core/utc-date.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import type { CountedKey, CreditCounter, CreditStore } from "../../edge/credits/contract.ts";
import { withoutOutbox } from "../../postgres/unmarked-transaction.ts";
import {
  deleteKeyCredits,
  type KeyCreditsRow,
  listKeyCredits,
  listLiveKeys,
  lockKeyCredits,
  type NewKeyCredits,
  putKeyCredits,
  shareLockKeys,
} from "../db/key-credits.ts";
import type { CreditKey, CreditRow, CreditService } from "./service.ts";

/*
 * The credits of a key are stored permanently in Postgres, and in a Redis counter while they are being spent. A change and a load both hold
 * the lock of the row, so that they never overlap:
 *
 *   change: lock ─ suspend the counter, which returns the spent credits ─ write the row under a new rev ─ commit ─ reopen
 *   load:   lock ─ write the counter from the row ─ spend from it, if a spender waits ─ unlock
 *
 * Between `suspend` and `reopen` no credits can be spent. If a process dies in between, the counter stays suspended, until the next call
 * that spends credits requests a load, which opens the counter again. Rows of several keys are locked in id order.
 */
export function createCreditService(deps: {
  db: Pool;
  store: CreditStore;
  nowMs: () => number;
  log: Pick<Logger, "warn">;
}): CreditService {
  const { db, store, nowMs, log } = deps;

  /** Loads the counters of the keys. If every key then has a counter, runs `spend` before the locks are released. */
  async function loadAll<T>(keys: readonly CreditKey[], spend: () => Promise<T>): Promise<T | undefined> {
    let spent: T | undefined;
    await withoutOutbox(db, async (tx) => {
      const rows = byKeyId(await lockOrHold(tx, keys));
      // Reads this list after locking, because a key that was deleted while this transaction waited for the lock must not get its counter
      // back.
      const live = await listLiveKeys(tx, keys);
      const counted: CountedKey[] = [];
      const deleted: CreditKey[] = [];
      for (const ref of keys) {
        const row = rows.get(ref.keyId);
        if (row !== undefined && live.has(ref.keyId)) counted.push({ ref, counter: row });
        else deleted.push(ref);
      }
      if (deleted.length > 0) await store.remove(deleted).catch(unavailable);
      if (counted.length > 0) await store.load(counted).catch(unavailable);
      if (deleted.length === 0) spent = await spend();
    });
    return spent;
  }

  const load = (keys: readonly CreditKey[]): Promise<void> => loadAll(keys, async () => undefined);

  return {
    async readRemaining(key) {
      return (await this.readManyRemaining(db, key.workspaceId, [key.keyId])).get(key.keyId);
    },

    async readSharedRemaining({ workspaceId, keyId }) {
      const [row] = await listKeyCredits(db, { workspaceId, keyIds: [keyId] });
      if (row === undefined) return undefined;
      const [counter] = await store.read([toRef(row)]).catch(unavailable);
      return row.granted - trueSpent(row, counter);
    },

    async readManyRemaining(queryable, workspaceId, keyIds) {
      const rows = await listKeyCredits(queryable, { workspaceId, keyIds });
      // If Redis is unreachable, uses only the stored rows.
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

    async reopen(keys) {
      try {
        await load(keys);
      } catch (error) {
        // Logs the error instead of throwing it, because the transaction has already ended and its result must reach the caller.
        const [first] = keys;
        log.warn(
          { err: error, ...first, keys: keys.length },
          "credit counters stay closed until a spender requests them",
        );
      }
    },

    load,

    loadAndSpend: (key, spend) => loadAll([key], spend),
  };
}

const byKeyId = (rows: readonly KeyCreditsRow[]) => new Map(rows.map((row) => [row.key_id, row]));

const toRef = (row: KeyCreditsRow): CreditKey => ({ workspaceId: row.workspace_id, keyId: row.key_id });

/**
 * Locks the credits of keys. An unlimited key has no row to lock, so the key itself is locked: a transaction that gives the key credits
 * then waits until the old counter is removed, so the new counter is not removed by mistake.
 */
async function lockOrHold(tx: PoolClient, keys: readonly CreditKey[]): Promise<KeyCreditsRow[]> {
  const rows = await lockKeyCredits(tx, keys);
  if (rows.length === keys.length) return rows;
  const locked = byKeyId(rows);
  const missing = keys.filter(({ keyId }) => !locked.has(keyId));
  await shareLockKeys(tx, missing);
  return [...rows, ...(await lockKeyCredits(tx, missing))];
}

/** Throws `CountersUnavailable`, which the API reports as a 503 response. */
function unavailable(cause: unknown): never {
  throw new CountersUnavailable("a key's credit counter cannot be reached", { cause });
}

function toCredits(row: KeyCreditsRow, spent: number): CreditRow {
  return { remaining: row.granted - spent, refillAmount: row.refill_amount, refillDay: row.refill_day };
}

/**
 * Returns the number of spent credits: the row's value or, if it is larger and the counter belongs to the same grant, the counter's. The
 * result never exceeds the granted credits.
 */
function trueSpent(row: KeyCreditsRow, counter: CreditCounter | undefined): number {
  const counted = counter?.rev === row.rev ? counter.spent : 0;
  return Math.min(row.granted, Math.max(row.spent, counted));
}
