import { expect, test } from "vitest";
import { aKeyView } from "../../test/builders/key-view.ts";

test("key view merges direct and inherited permissions, unique and sorted", () => {
  const view = aKeyView({
    key: { permissions: ["z", "a"] },
    roles: [
      { id: "role_2", name: "writer", permissions: ["a", "b.*"] },
      { id: "role_1", name: "reader", permissions: ["c"] },
    ],
  });
  expect(view.permissions).toEqual(["a", "b.*", "c", "z"]);
  expect(view.roles).toEqual(["reader", "writer"]);
  expect(view.grants.satisfies("b.x")).toBe(true);
  expect(view.grants.satisfies("writer")).toBe(false);
});
