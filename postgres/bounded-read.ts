import type { Pool } from "pg";
import { isWaitOver } from "./failures.ts";
import type { Queryable } from "./queryable.ts";
import { withoutOutbox } from "./unmarked-transaction.ts";

/** Scheduler state of a pool: the number of running bounded reads, and the waiting reads. */
interface FairScheduler {
  running: number;
  readonly waiting: Set<() => void>;
}

const known = new WeakMap<Pool, FairScheduler>();

function schedulerOf(db: Pool): FairScheduler {
  const turns = known.get(db) ?? { running: 0, waiting: new Set() };
  known.set(db, turns);
  return turns;
}

/** Maximum number of concurrent bounded reads: half of the connections stay free for other work. */
const runningMax = ({ options: { max } }: Pool): number => Math.max(1, Math.floor(max / 2));

/** Waits for a slot. Returns false if no slot was free within `msMax`. A caller that gets a slot must call `releaseTurn`. */
function acquireTurn(db: Pool, turns: FairScheduler, msMax: number): Promise<boolean> | true {
  if (turns.running < runningMax(db)) {
    turns.running += 1;
    return true;
  }
  return new Promise((resolve) => {
    const take = (): void => {
      clearTimeout(timer);
      turns.waiting.delete(take);
      resolve(true);
    };
    const timer = setTimeout(() => {
      turns.waiting.delete(take);
      resolve(false);
    }, msMax);
    turns.waiting.add(take);
  });
}

/** Passes the slot to the caller that has waited longest. */
function releaseTurn(turns: FairScheduler): void {
  const [next] = turns.waiting;
  if (next === undefined) turns.running -= 1;
  else next();
}

/**
 * Runs read statements, each with a timeout of `msMax`. Reads that run through this function use at most half of the connections. Returns
 * `TOO_SLOW` if a statement timed out, or no slot was free within `msMax`.
 */
export async function inBoundedRead<T>(
  db: Pool,
  msMax: number,
  read: (db: Queryable) => Promise<T>,
): Promise<T | "TOO_SLOW"> {
  const turns = schedulerOf(db);
  if (!(await acquireTurn(db, turns, msMax))) return "TOO_SLOW";
  try {
    return await withoutOutbox(db, async (tx) => {
      // The third argument of `set_config` limits the setting to this transaction, like `set local`.
      const text = "select set_config('statement_timeout', $1, true)";
      await tx.query({ name: "limit-statement-time", text, values: [`${msMax}ms`] });
      return read(tx);
    });
  } catch (error) {
    if (isWaitOver(error)) return "TOO_SLOW";
    throw error;
  } finally {
    releaseTurn(turns);
  }
}
