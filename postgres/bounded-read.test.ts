import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../test/harness/postgres.ts";
import { inBoundedRead } from "./bounded-read.ts";
import { createPool } from "./pool.ts";

let database: TestDatabase;
let db: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 4 });
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

const sleep = (ms: number, msMax: number) =>
  inBoundedRead(db, msMax, async (tx) => (await tx.query("select pg_sleep($1)", [ms / 1000])).rowCount);

test("bounded read aborts a statement that takes too long", async () => {
  expect(await sleep(5_000, 100)).toBe("TOO_SLOW");
  expect(await sleep(1, 1_000)).toBe(1);
});

test("bounded reads leave half of the connections free, and time out if they wait too long", async () => {
  const startedMs = performance.now();
  const many = Promise.all(Array.from({ length: 20 }, () => sleep(60_000, 3_000)));
  for (let i = 0; i < 10; i++) {
    expect((await db.query("select 1")).rowCount).toBe(1);
    expect(db.totalCount - db.idleCount).toBeLessThanOrEqual(2);
  }
  expect(performance.now() - startedMs).toBeLessThan(2_900);
  expect(new Set(await many)).toEqual(new Set(["TOO_SLOW"]));
  expect(performance.now() - startedMs).toBeLessThan(15_000);
});

test("bounded reads are served in order, even after one fails", async () => {
  const failing = () => inBoundedRead(db, 5_000, () => Promise.reject(new Error("fails")));
  const replies = await Promise.allSettled([
    ...Array.from({ length: 5 }, failing),
    ...Array.from({ length: 10 }, () => sleep(20, 5_000)),
  ]);
  expect(replies.map(({ status }) => status)).toEqual([...Array(5).fill("rejected"), ...Array(10).fill("fulfilled")]);
});
