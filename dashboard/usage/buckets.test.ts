import { describe, expect, test } from "vitest";
import { BUCKET_MS, bucketStarts, PRESET_NAMES, type Range, windowOf } from "./buckets.ts";

const NOW_MS = Date.parse("2026-03-01T10:30:15.500Z");
const at = (text: string): number => Date.parse(`${text}Z`);
const inWords = (range: Range, visibleFromMs?: number) => {
  const { bucket, fromMs, toMs } = windowOf(range, NOW_MS, visibleFromMs);
  return [bucket, new Date(fromMs).toISOString().slice(0, 16), new Date(toMs).toISOString().slice(0, 16)];
};

describe("a time range preset", () => {
  test.each([
    ["1h", "minute", "2026-03-01T09:31", 60],
    ["6h", "minute", "2026-03-01T04:31", 360],
    ["24h", "hour", "2026-02-28T11:00", 24],
    ["7d", "hour", "2026-02-22T11:00", 168],
    ["30d", "day", "2026-01-31T00:00", 30],
  ] as const)(
    "usage preset %s has complete %s buckets, and the current bucket is last",
    (preset, bucket, from, count) => {
      const window = windowOf(preset, NOW_MS);
      expect(inWords(preset).slice(0, 2)).toEqual([bucket, from]);
      expect(bucketStarts(window)).toHaveLength(count);
      expect(window.toMs).toBeGreaterThan(NOW_MS);
      expect(window.toMs - BUCKET_MS[bucket]).toBeLessThanOrEqual(NOW_MS);
    },
  );

  test("usage preset of 30 days never starts before the retention period", () => {
    for (const nowMs of [at("2026-03-01T00:00:00"), at("2026-03-01T23:59:59.999")]) {
      expect(windowOf("30d", nowMs).fromMs).toBeGreaterThan(nowMs - 30 * BUCKET_MS.day);
    }
  });
});

describe("a custom time range", () => {
  test.each([
    ["minutes up to six hours", "2026-02-01T00:00:30", "2026-02-01T06:00:30", "minute"],
    ["hours beyond that", "2026-02-01T00:00:00", "2026-02-01T06:00:01", "hour"],
    ["hours up to nine days", "2026-02-01T00:10:00", "2026-02-10T00:10:00", "hour"],
    ["days beyond that", "2026-02-01T00:00:00", "2026-02-11T00:00:00", "day"],
  ])("custom usage range has %s, and includes partial buckets at its ends", (_, from, to, bucket) => {
    const window = windowOf({ fromMs: at(from), toMs: at(to) }, NOW_MS);
    expect(window.bucket).toBe(bucket);
    expect(window.fromMs).toBeLessThanOrEqual(at(from));
    expect(window.toMs).toBeGreaterThanOrEqual(at(to));
    expect(window.fromMs % BUCKET_MS[window.bucket]).toBe(0);
    expect(window.toMs % BUCKET_MS[window.bucket]).toBe(0);
  });

  test("custom usage range with swapped ends is accepted and has at least one bucket", () => {
    const [fromMs, toMs] = [at("2026-02-01T00:00:00"), at("2026-02-01T00:05:00")];
    expect(windowOf({ fromMs: toMs, toMs: fromMs }, NOW_MS)).toEqual(windowOf({ fromMs, toMs }, NOW_MS));
    expect(bucketStarts(windowOf({ fromMs, toMs: fromMs }, NOW_MS))).toEqual([fromMs]);
  });

  test("custom usage range from a URL is limited in length", () => {
    for (const preset of PRESET_NAMES) expect(bucketStarts(windowOf(preset, NOW_MS)).length).toBeLessThanOrEqual(360);
    expect(bucketStarts(windowOf({ fromMs: 0, toMs: 8.64e15 }, NOW_MS)).length).toBeLessThanOrEqual(401);
  });
});

test("custom usage range starts with the first complete bucket available", () => {
  expect(inWords("30d", at("2026-02-26T12:00:00"))).toEqual(["day", "2026-02-27T00:00", "2026-03-02T00:00"]);
  expect(inWords("1h", at("2026-03-01T10:00:00"))).toEqual(["minute", "2026-03-01T10:00", "2026-03-01T10:31"]);
  // Nothing of the chosen part can be seen: one bucket that can.
  expect(inWords({ fromMs: 0, toMs: 1 }, at("2026-03-01T10:00:00"))[1]).toBe("2026-03-01T10:00");
});
