import { expect, test } from "vitest";
import { differenceOf } from "./links.ts";

test.each([
  { before: [], text: "", added: [], removed: [] },
  { before: ["a", "b"], text: "b\n\n c \nC", added: ["C"], removed: ["a"] },
  { before: ["Editor"], text: "editor", added: [], removed: [] },
  { before: ["a, b"], text: "a, b\n支付", added: ["支付"], removed: [] },
])("editing links from $before to $text adds $added and removes $removed", ({ before, text, added, removed }) =>
  expect(differenceOf(before, text)).toEqual({ added, removed }),
);
