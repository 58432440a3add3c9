import { expect, test } from "vitest";
import { cacheBytesMax, cacheLimits } from "./cache-limits.ts";

const MIB = 1024 * 1024;

test.each([
  { name: "of nothing to spare still has some", heapMib: 16, bytesMib: 1, absences: 1_678 },
  { name: "of a gate's default limit", heapMib: 42, bytesMib: 5, absences: 8_389 },
  { name: "of a large gate", heapMib: 256, bytesMib: 58.5, absences: 20_000 },
])("gate derives its cache limits from the heap size: a heap $name", ({ heapMib, bytesMib, absences }) => {
  expect(cacheLimits({}, heapMib * MIB)).toEqual({ bytes: bytesMib * MIB, absences });
});

test("explicit gate cache limits override those derived from the heap size", () => {
  const heap = 42 * MIB;
  expect(cacheLimits({ keys: 5_000 }, heap)).toMatchObject({ views: 5_000, records: 12_500, bytes: 5 * MIB });
  expect(cacheLimits({ bytes: 8 * MIB }, heap)).toEqual({ bytes: 8 * MIB, absences: 8_389 });
  expect(cacheLimits({ keys: 1, bytes: 2 * MIB }, heap)).toMatchObject({ views: 1, records: 1_000, bytes: 2 * MIB });
});

test("configured gate cache size is limited to half of the spare heap", () => {
  expect(cacheBytesMax(42 * MIB)).toBe(10 * MIB);
  expect(cacheBytesMax(16 * MIB)).toBe(2 * MIB);
});
