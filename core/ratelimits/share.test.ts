import fc from "fast-check";
import { expect, test } from "vitest";
import { shareOfLimit } from "./decide-limits.ts";

test.each([
  { limit: 100, pods: 3, is: 33 },
  { limit: 100, pods: 1, is: 100 },
  { limit: 2, pods: 3, is: 1 },
  { limit: 0, pods: 3, is: 0 },
  { name: "no pod was ever heard of", limit: 100, pods: 0, is: 100 },
])("share of limit $limit among $pods pods is $is", ({ limit, pods, is }) =>
  expect(shareOfLimit(limit, pods)).toBe(is),
);

test("pod shares of a limit add up to at most the limit, or to one unit per pod", () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 10_000 }), (limit, pods) => {
      expect(pods * shareOfLimit(limit, pods)).toBeLessThanOrEqual(Math.max(limit, pods));
    }),
  );
});
