import type { WindowCounts } from "../../core/ratelimits/window.ts";
import { isCluster, type RedisClient } from "../redis/connect.ts";
import { readNumbers, runScript } from "../redis/script.ts";
import { countsAt } from "./redis.ts";
import { SYNC_COUNTS, SYNC_KEYS_MAX } from "./scripts.ts";

/** Units admitted in one window. */
export interface Amount {
  readonly window: number;
  readonly amount: number;
}

export interface SyncItem extends Amount {
  readonly key: string;
  readonly durationMs: number;
}

export interface Synced {
  readonly nowMs: number;
  /** The totals after the sync, in the order of the items. */
  readonly counts: readonly WindowCounts[];
}

/**
 * Returns the counts with the amounts added, as the shared store would compute them. Amounts for windows older than the previous one are
 * ignored.
 */
export function withAmounts(counts: WindowCounts | undefined, amounts: readonly Amount[]): WindowCounts | undefined {
  let sum = counts;
  for (const { window, amount } of amounts) {
    if (sum === undefined || window > sum.window + 1) sum = { window, current: amount, previous: 0 };
    else if (window === sum.window + 1) sum = { window, current: amount, previous: sum.current };
    else if (window === sum.window) sum = { ...sum, current: sum.current + amount };
    else if (window === sum.window - 1) sum = { ...sum, previous: sum.previous + amount };
  }
  return sum;
}

/**
 * Sends the amounts to Redis and returns the totals. Returns `undefined` without sending anything if Redis is disconnected. Throws if it is
 * unknown whether the amounts were added.
 */
export async function syncWithRedis(client: RedisClient, items: readonly SyncItem[]): Promise<Synced | undefined> {
  if (client.status !== "ready") return undefined;
  const size = isCluster(client) ? 1 : SYNC_KEYS_MAX;
  const batches: Promise<number[]>[] = [];
  for (let at = 0; at < items.length; at += size) batches.push(sendBatch(client, items.slice(at, at + size)));
  const replies = await Promise.all(batches);
  return {
    nowMs: replies[0]?.[0] ?? Date.now(),
    counts: items.map((_, i) => countsAt(replies[Math.floor(i / size)] ?? [], 1 + 3 * (i % size))),
  };
}

async function sendBatch(client: RedisClient, items: readonly SyncItem[]): Promise<number[]> {
  const keys = items.map((item) => item.key);
  const args = items.flatMap(({ durationMs, window, amount }) => [durationMs, window, amount]);
  return readNumbers(await runScript(client, SYNC_COUNTS, keys.length, [...keys, ...args]));
}
