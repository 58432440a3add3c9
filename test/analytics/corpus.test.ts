import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestClickhouse, type TestClickhouse } from "../harness/clickhouse.ts";
import { CORPUS } from "./corpus/all.ts";
import { corpusEvents } from "./events.ts";
import { askOracle, loadOracle } from "./oracle.ts";

let clickhouse: TestClickhouse;

beforeAll(async () => {
  clickhouse = await createTestClickhouse();
  await loadOracle(clickhouse.url, corpusEvents());
}, 180_000);

afterAll(async () => {
  await clickhouse?.drop();
});

test("the corpus has at least 300 queries, none twice", () => {
  expect(CORPUS.length).toBeGreaterThanOrEqual(300);
  expect(new Set(CORPUS.map(({ query }) => query)).size).toBe(CORPUS.length);
});

test("ClickHouse answers each query but those that it is to refuse", async () => {
  const wrong: string[] = [];
  for (const { query, oracle = query, fails = false, refused } of CORPUS) {
    const error = await askOracle(clickhouse.url, oracle).then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
    if (refused === undefined && (error !== undefined) !== fails) wrong.push(`${query}\n  ${error ?? "is answered"}`);
  }
  expect(wrong).toEqual([]);
}, 180_000);
