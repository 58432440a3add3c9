import { expect, test } from "vitest";
import { fuzzAnalytics } from "./fuzz.ts";

test("random analytics queries agree with ClickHouse or are rejected", { timeout: 240_000 }, async () => {
  const { found, answered, compared, refused } = await fuzzAnalytics({ seed: "1", queriesMax: 200, seconds: 180 });
  expect(found).toEqual([]);
  // Neither all right nor all wrong: else the grammar has lost its use.
  expect(answered).toBeGreaterThan(60);
  expect(compared).toBeGreaterThan(40);
  expect(refused).toBeGreaterThan(20);
});
