import type { Pool } from "pg";
import { isWaitOver } from "./failures.ts";
import type { Queryable } from "./queryable.ts";
import { inUnmarkedTransaction } from "./unmarked-transaction.ts";

/** Of a pool: how many bounded reads run, and who waits until one of them has ended. */
interface Turns {
  running: number;
  readonly waiting: Set<() => void>;
}

const known = new WeakMap<Pool, Turns>();

function turnsOf(db: Pool): Turns {
  const turns = known.get(db) ?? { running: 0, waiting: new Set() };
  known.set(db, turns);
  return turns;
}

/** Half of the connections stay free for everything else, however many reads there are. */
const runningMax = ({ options: { max } }: Pool): number => Math.max(1, Math.floor(max / 2));

/** Returns false when there was none for `msMax`. Who gets a turn ends it with `endTurn`. */
function takeTurn(db: Pool, turns: Turns, msMax: number): Promise<boolean> | true {
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

/** The one that waited longest takes its place. */
function endTurn(turns: Turns): void {
  const [next] = turns.waiting;
  if (next === undefined) turns.running -= 1;
  else next();
}

/**
 * Runs read statements with a timeout of `msMax` each, when there is a turn for them: reads that may be slow take half of the connections at
 * most. Returns `TOO_SLOW` when one timed out, or when there was no turn for `msMax`.
 */
export async function inBoundedRead<T>(
  db: Pool,
  msMax: number,
  read: (db: Queryable) => Promise<T>,
): Promise<T | "TOO_SLOW"> {
  const turns = turnsOf(db);
  if (!(await takeTurn(db, turns, msMax))) return "TOO_SLOW";
  try {
    return await inUnmarkedTransaction(db, async (tx) => {
      // Only for this transaction, like `set local`.
      const text = "select set_config('statement_timeout', $1, true)";
      await tx.query({ name: "limit-statement-time", text, values: [`${msMax}ms`] });
      return read(tx);
    });
  } catch (error) {
    if (isWaitOver(error)) return "TOO_SLOW";
    throw error;
  } finally {
    endTurn(turns);
  }
}
