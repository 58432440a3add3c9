import { expect, test } from "vitest";
import { differenceOf } from "./links.ts";

test.each([
  { before: [], after: [], added: [], removed: [] },
  { before: ["a", "b"], after: ["b", "c", "C"], added: ["C"], removed: ["a"] },
  { before: ["Editor"], after: ["editor"], added: [], removed: [] },
  { before: ["a, b"], after: ["a, b", "支付"], added: ["支付"], removed: [] },
])("editing links from $before to $after adds $added and removes $removed", ({ before, after, added, removed }) =>
  expect(differenceOf(before, after)).toEqual({ added, removed }),
);
