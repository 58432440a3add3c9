import { expect, test } from "vitest";
import type { FaultEntry } from "../journal.ts";
import { LIMIT } from "../load/keys.ts";
import { aCase, aFault, anAsk } from "./a-case.ts";
import { judgeLimits } from "./limits.ts";

/** So many requests let in, all in one window (the fixed instant is the start of one), from two processes by turns. */
function count(letIn: number, { faults = [], fromS = 1 }: { faults?: FaultEntry[]; fromS?: number } = {}): number {
  const asks = Array.from({ length: letIn }, (_, n) =>
    anAsk(fromS + n / 100, "valid", { keyKind: "limited", process: `sidecar-${n % 2}` }),
  );
  return judgeLimits(aCase({ asks, faults })).length;
}

test("the limit is let in, and not one more", () => {
  expect([count(LIMIT), count(LIMIT + 1)]).toEqual([0, 1]);
});

test("two windows have two limits", () => {
  expect(count(2 * LIMIT, { fromS: 5 - LIMIT / 100 })).toBe(0);
});

test("a store that was lost in the window counts anew, but counts", () => {
  const faults = [aFault("flush-redis", 2, 2)];
  // Both processes had to find out that it was there again.
  expect([count(4 * LIMIT, { faults }), count(4 * LIMIT + 1, { faults })]).toEqual([0, 1]);
});

test("a store that was away lets each process count for itself", () => {
  const faults = [aFault("stop-redis", 0, 2)];
  expect([count(3 * LIMIT, { faults }), count(3 * LIMIT + 1, { faults })]).toEqual([0, 1]);
});

test("a fault of something else excuses nothing, nor one that was left out, nor one long ago", () => {
  expect(count(LIMIT + 1, { faults: [aFault("abort-postgres", 0, 2)] })).toBe(1);
  expect(count(LIMIT + 1, { faults: [aFault("flush-redis", 2, 2, { skipped: "busy" })] })).toBe(1);
  expect(count(LIMIT + 1, { faults: [aFault("flush-redis", -10, -9)] })).toBe(1);
});
