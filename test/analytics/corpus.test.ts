import { afterAll, beforeAll, expect, test } from "vitest";
import { CORPUS } from "./corpus/all.ts";
import { type CorpusWorld, openCorpusWorld, type Seen } from "./corpus-world.ts";
import { judge, problemsOf } from "./judge.ts";

/*
 * The corpus through the API on Postgres and on ClickHouse. The answers are, letter by letter, those of ClickHouse's own engine to the
 * caller's text over flat tables.
 */

const MINUTES = 60_000;
/** Some at a time: most of what a query takes is waiting. */
const AT_ONCE = 2;
/** What a second workspace asks: all of them would show the same once more. */
const SOME = CORPUS.filter((_, index) => index % 6 === 0);

let world: CorpusWorld;

beforeAll(async () => {
  world = await openCorpusWorld();
}, 5 * MINUTES);
afterAll(() => world?.close());

test("analytics query corpus has at least 300 distinct queries", () => {
  expect(CORPUS.length).toBeGreaterThanOrEqual(300);
  expect(new Set(CORPUS.map(({ query }) => query)).size).toBe(CORPUS.length);
});

test(
  "analytics API on either database returns the same results as ClickHouse",
  async () => {
    expect(await faultsFor(world.main)).toEqual([]);
  },
  10 * MINUTES,
);

test(
  "analytics API returns only a workspace's own rows",
  async () => {
    expect(await faultsFor(world.second, SOME)).toEqual([]);
  },
  10 * MINUTES,
);

async function faultsFor(seen: Seen, queries = CORPUS): Promise<string[]> {
  const left = [...queries];
  const faults: string[] = [];
  const work = async () => {
    for (let query = left.pop(); query !== undefined; query = left.pop()) {
      faults.push(...problemsOf(await judge(world.served, seen, query)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return faults;
}
