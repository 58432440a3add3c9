import fc from "fast-check";
import { expect, test } from "vitest";
import { withAmounts } from "./sync.ts";

const counts = { window: 7, current: 5, previous: 3 };

test.each([
  { name: "of the same window adds to it", window: 7, after: { window: 7, current: 6, previous: 3 } },
  {
    name: "of the window before adds to what is carried over",
    window: 6,
    after: { window: 7, current: 5, previous: 4 },
  },
  { name: "of an older window is ignored", window: 5, after: counts },
  {
    name: "of the next window makes the current window the previous one",
    window: 8,
    after: { window: 8, current: 1, previous: 5 },
  },
  { name: "of a later window leaves nothing to carry over", window: 9, after: { window: 9, current: 1, previous: 0 } },
])("merging an amount into the windows of a counter has the expected result: an amount $name", ({ window, after }) =>
  expect(withAmounts(counts, [{ window, amount: 1 }])).toEqual(after),
);

test("merging no amounts into empty counters yields empty counters", () =>
  expect(withAmounts(undefined, [])).toBeUndefined());

test("merged counters keep only the two newest windows in any order of amounts", () => {
  const amount = fc.record({ window: fc.integer({ min: 1, max: 6 }), amount: fc.nat(9) });
  fc.assert(
    fc.property(fc.array(amount, { minLength: 1, maxLength: 8 }), (amounts) => {
      const sums = new Map<number, number>();
      let newest = 0;
      for (const { window, amount: added } of amounts) {
        if (window < newest - 1) continue;
        newest = Math.max(newest, window);
        sums.set(window, (sums.get(window) ?? 0) + added);
      }
      const expected = { window: newest, current: sums.get(newest) ?? 0, previous: sums.get(newest - 1) ?? 0 };
      expect(withAmounts(undefined, amounts)).toEqual(expected);
    }),
  );
});
