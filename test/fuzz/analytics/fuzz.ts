import { FOREIGN_MARK, openMarkedStore } from "../../analytics/marked-store.ts";
import { Random } from "../../torture/random.ts";
import { randomQuery } from "./grammar.ts";

/*
 * Plays random queries of the grammar against a Postgres with rows of others in it. None may fail in another way than by a problem of
 * the query or a limit, and none may show what is not the caller's.
 */

export interface Found {
  readonly query: string;
  readonly problem: string;
}

export interface Fuzzed {
  readonly queries: number;
  readonly answered: number;
  readonly refused: number;
  readonly found: readonly Found[];
}

export interface FuzzOptions {
  readonly seed: string;
  /** Whichever ends first. */
  readonly queriesMax: number;
  readonly seconds: number;
  readonly onProgress?: (so: Fuzzed) => void;
}

const FOUND_MAX = 20;
const PROGRESS_EVERY = 500;

export async function fuzzAnalytics({ seed, queriesMax, seconds, onProgress }: FuzzOptions): Promise<Fuzzed> {
  const faults: string[] = [];
  const store = await openMarkedStore({ onFault: (fault) => void faults.push(fault) });
  const random = new Random(seed);
  const found: Found[] = [];
  let [queries, answered, refused] = [0, 0, 0];
  const so = (): Fuzzed => ({ queries, answered, refused, found });
  const untilMs = performance.now() + seconds * 1000;
  try {
    while (queries < queriesMax && performance.now() < untilMs && found.length < FOUND_MAX) {
      const query = randomQuery(random.fork(String(queries++)));
      try {
        const answer = await store.ask(query);
        if ("refused" in answer) refused += 1;
        else {
          answered += 1;
          if (FOREIGN_MARK.test(answer.rows))
            found.push({ query, problem: `shows others' rows: ${answer.rows.slice(0, 200)}` });
        }
      } catch (error) {
        found.push({ query, problem: String(error) });
      }
      for (const fault of faults.splice(0)) found.push({ query, problem: fault });
      if (queries % PROGRESS_EVERY === 0) onProgress?.(so());
    }
  } finally {
    await store.close();
  }
  return so();
}
