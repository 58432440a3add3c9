import { expect, test } from "vitest";
import { fuzzAnalytics } from "./fuzz.ts";

test("random queries are answered with own rows, or refused as what they are", { timeout: 180_000 }, async () => {
  const { found, answered, refused } = await fuzzAnalytics({ seed: "1", queriesMax: 1_500, seconds: 120 });
  expect(found).toEqual([]);
  // Neither all right nor all wrong: else the grammar has lost its use.
  expect(answered).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(20);
});
