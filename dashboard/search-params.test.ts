import { describe, expect, test } from "vitest";
import { choiceIn, textsIn, withText } from "./search-params.ts";

describe("textsIn", () => {
  test.each([
    { search: { search: "acme", identity: "id_1", other: "x" }, texts: { search: "acme", identity: "id_1" } },
    { search: { search: "" }, texts: {} },
    { search: { search: 123, identity: 0 }, texts: { search: "123", identity: "0" } },
    { search: { search: ["acme"], identity: { of: 1 } }, texts: {} },
    { search: { search: null, identity: true }, texts: {} },
    { search: { search: "a\u0000b", identity: "\u202Eid" }, texts: { identity: "\u202Eid" } },
    { search: { search: "x".repeat(256) }, texts: { search: "x".repeat(255) } },
  ])("textsIn reads $texts from search parameters $search", ({ search, texts }) =>
    expect(textsIn(search, "search", "identity")).toEqual(texts),
  );
});

describe("withText", () => {
  const before: { readonly search?: string; readonly identity?: string } = { search: "acme", identity: "id_1" };

  test("withText changes one search parameter and keeps the others", () =>
    expect(withText("search", "shop")(before)).toEqual({ search: "shop", identity: "id_1" }));

  test("withText removes an empty search parameter", () =>
    expect(withText("search", "")(before)).toEqual({ identity: "id_1" }));
});

test.each([
  { value: "yes", choice: { managed: "yes" } },
  { value: "YES", choice: {} },
  { value: "toString", choice: {} },
  { value: ["yes"], choice: {} },
  { value: undefined, choice: {} },
])("choiceIn reads $choice from $value", ({ value, choice }) =>
  expect(choiceIn({ managed: value }, "managed", ["yes", "no"])).toEqual(choice),
);
