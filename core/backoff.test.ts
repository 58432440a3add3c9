import { expect, test } from "vitest";
import { backoffMs, doubledMs, jitterMs } from "./backoff.ts";

const options = { firstMs: 100, maxMs: 5_000, random: () => 0 };

test("backoff doubles with each consecutive failure up to its maximum", () => {
  expect([1, 2, 3, 6, 7, 1000].map((failures) => backoffMs(failures, options))).toEqual([
    100, 200, 400, 3200, 5000, 5000,
  ]);
});

test("backoff randomizes at most half of the delay", () => {
  const almostOne = 1 - Number.EPSILON;
  expect(backoffMs(3, { ...options, random: () => almostOne })).toBe(200);
  for (let i = 0; i < 100; i++) {
    const ms = backoffMs(3, { ...options, random: Math.random });
    expect(ms).toBeGreaterThanOrEqual(200);
    expect(ms).toBeLessThanOrEqual(400);
  }
});

test("backoff jitter only shortens the delay", () => {
  expect(jitterMs(1000, 0.1, () => 0)).toBe(1000);
  expect(jitterMs(1000, 0.1, () => 1)).toBe(900);
});

test("next backoff delay doubles the previous one within its bounds", () => {
  const waits = [0];
  for (let i = 0; i < 6; i++) waits.push(doubledMs(waits.at(-1) ?? 0, { firstMs: 50, maxMs: 500 }));
  expect(waits).toEqual([0, 50, 100, 200, 400, 500, 500]);
  expect(doubledMs(30_000, { firstMs: 200, maxMs: 1_000 })).toBe(1_000);
});
