import { expect, test } from "vitest";
import { bytesForEvents } from "./redis-budget.ts";

const MIB = 1024 * 1024;
const given = { requestedBytes: 256 * MIB, maxBytes: 1024 * MIB, usedByOthersBytes: 100 * MIB, isShared: true };

test.each([
  { name: "the wanted amount, on a large server", changes: { maxBytes: 4096 * MIB }, mib: 256 },
  { name: "the wanted amount, on a server without a limit", changes: { maxBytes: 0 }, mib: 256 },
  { name: "a quarter of a small server", changes: { maxBytes: 400 * MIB }, mib: 100 },
  {
    name: "half of what records and counters leave free",
    changes: { maxBytes: 400 * MIB, usedByOthersBytes: 350 * MIB },
    mib: 25,
  },
  { name: "nothing, when these leave nothing free", changes: { usedByOthersBytes: 1100 * MIB }, mib: 0 },
  { name: "three quarters of a server for events only", changes: { maxBytes: 200 * MIB, isShared: false }, mib: 150 },
])("Redis memory for events is limited to $name", ({ changes, mib }) =>
  expect(bytesForEvents({ ...given, ...changes })).toBe(mib * MIB),
);
