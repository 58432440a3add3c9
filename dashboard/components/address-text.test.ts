import { describe, expect, test } from "vitest";
import { textsIn, withText } from "./address-text.ts";

describe("textsIn", () => {
  test.each([
    { search: { search: "acme", identity: "id_1", other: "x" }, texts: { search: "acme", identity: "id_1" } },
    { search: { search: "" }, texts: {} },
    { search: { search: 123, identity: 0 }, texts: { search: "123", identity: "0" } },
    { search: { search: ["acme"], identity: { of: 1 } }, texts: {} },
    { search: { search: null, identity: true }, texts: {} },
  ])("reads $texts out of $search", ({ search, texts }) =>
    expect(textsIn(search, "search", "identity")).toEqual(texts),
  );
});

describe("withText", () => {
  const before: { readonly search?: string; readonly identity?: string } = { search: "acme", identity: "id_1" };

  test("changes one text and keeps the others", () =>
    expect(withText("search", "shop")(before)).toEqual({ search: "shop", identity: "id_1" }));

  test("takes an empty one away", () => expect(withText("search", "")(before)).toEqual({ identity: "id_1" }));
});
