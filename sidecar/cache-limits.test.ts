import { expect, test } from "vitest";
import { cacheLimits } from "./cache-limits.ts";

const MIB = 1024 * 1024;

test.each([
  { name: "of nothing to spare still has some", heapMib: 16, bytesMib: 1, absences: 1_678 },
  { name: "of a gate's default limit", heapMib: 42, bytesMib: 5, absences: 8_389 },
  { name: "of a large gate", heapMib: 256, bytesMib: 58.5, absences: 20_000 },
])("a heap $name", ({ heapMib, bytesMib, absences }) => {
  expect(cacheLimits(heapMib * MIB)).toEqual({ bytes: bytesMib * MIB, absences });
});
