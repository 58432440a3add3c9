import { expect, test } from "vitest";
import { extended, type SelectionState, toggled } from "./use-selection.ts";

const ORDER = ["a", "b", "c", "d", "e"];
const START: SelectionState = { ids: new Set() };

const toggle = (state: SelectionState, index: number, isRange = false) => toggled(state, ORDER, { index, isRange });
const extend = (state: SelectionState, from: number, to: number) => extended(state, ORDER, { from, to });
const idsOf = ({ ids }: SelectionState): string => ORDER.filter((id) => ids.has(id)).join("");

test("toggling with Shift changes all rows from the last changed one, in both directions", () => {
  const one = toggle(START, 3);
  expect(idsOf(toggle(one, 1, true))).toBe("bcd");
  expect(idsOf(toggle(toggle(one, 1, true), 4, true))).toBe("bcde");
  expect(idsOf(toggle(toggle(one, 1, true), 2, true))).toBe("b");
  expect(idsOf(toggle(START, 2, true))).toBe("c");
  expect(idsOf(toggle(toggle(one, 3), 0))).toBe("a");
});

test("Shift with arrow keys extends and shrinks the selected range, and keeps other rows selected", () => {
  let state = toggle(toggle(START, 0), 2);
  for (const [from, to] of [
    [2, 3],
    [3, 4],
  ] as const)
    state = extend(state, from, to);
  expect(idsOf(state)).toBe("acde");
  state = extend(state, 4, 3);
  expect(idsOf(state)).toBe("acd");
  expect(idsOf(extend(state, 3, 1))).toBe("abc");
  // After a move without Shift, a new range starts at the row.
  expect(idsOf(extend(toggle(START, 0), 3, 4))).toBe("ade");
});

test("a row that has left the list neither starts nor changes a selected range", () => {
  const gone: SelectionState = { ids: new Set(["z"]), anchor: "z", end: "z" };
  expect(idsOf(toggle(gone, 2, true))).toBe("c");
  expect(idsOf(extend(gone, 1, 2))).toBe("bc");
  expect(toggle(gone, 9).ids).toBe(gone.ids);
});
