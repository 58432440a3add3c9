import { expect, test } from "vitest";
import { bytesForEvents } from "./redis-budget.ts";

const MIB = 1024 * 1024;
const given = { wantedBytes: 256 * MIB, maxBytes: 1024 * MIB, usedByOthersBytes: 100 * MIB, isShared: true };

test.each([
  { name: "what was asked for, where the server is large", changes: { maxBytes: 4096 * MIB }, mib: 256 },
  { name: "what was asked for, where the server has no bound", changes: { maxBytes: 0 }, mib: 256 },
  { name: "a quarter of a small one", changes: { maxBytes: 400 * MIB }, mib: 100 },
  {
    name: "half of what records and counters leave",
    changes: { maxBytes: 400 * MIB, usedByOthersBytes: 350 * MIB },
    mib: 25,
  },
  { name: "nothing, where they leave nothing", changes: { usedByOthersBytes: 1100 * MIB }, mib: 0 },
  { name: "three quarters of one for events alone", changes: { maxBytes: 200 * MIB, isShared: false }, mib: 150 },
])("events may take $name", ({ changes, mib }) => expect(bytesForEvents({ ...given, ...changes })).toBe(mib * MIB));
