import { expect, test } from "vitest";
import { changeOf } from "./audit-change.ts";

test("audit change lists only changed fields, with null for a missing value", () => {
  expect(changeOf({ name: "a", enabled: true }, { name: "b", enabled: true, expires: 5 })).toEqual({
    before: { name: "a", expires: null },
    after: { name: "b", expires: 5 },
  });
  expect(changeOf({ name: "a", expires: null }, { name: "a" })).toEqual({});
});

test("audit change compares lists and objects by content", () => {
  expect(changeOf({ roles: ["a", "b"], refill: { amount: 1 } }, { roles: ["a", "b"], refill: { amount: 1 } })).toEqual(
    {},
  );
  expect(changeOf({ roles: ["a"] }, { roles: ["a", "b"] })).toEqual({
    before: { roles: ["a"] },
    after: { roles: ["a", "b"] },
  });
});

test("audit change ignores member order and undefined members", () => {
  expect(changeOf({ onStale: { a: 1, b: 2 } }, { onStale: { b: 2, a: 1, c: undefined } })).toEqual({});
});

test("audit change stores only the size of meta", () => {
  const { before, after } = changeOf({ meta: { mail: "ann@example.com" } }, { meta: { mail: "bob@example.com" } });
  expect({ before, after }).toEqual({
    before: { meta: { members: 1, bytes: 26 } },
    after: { meta: { members: 1, bytes: 26 } },
  });
  expect(changeOf({ meta: null }, { meta: { a: "ä" } }).after).toEqual({ meta: { members: 1, bytes: 10 } });
});

test.each([
  { name: "a long text", value: "x".repeat(1_000_000) },
  { name: "a long list", value: Array.from({ length: 10_000 }, (_, i) => `permission.${i}`) },
  { name: "a deep object", value: JSON.parse(`${'{"a":'.repeat(200)}1${"}".repeat(200)}`) },
  {
    name: "many long members",
    value: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`${i}`.repeat(400), "y".repeat(400)])),
  },
])("audit change truncates $name", ({ value }) => {
  const { after } = changeOf({}, { value });
  expect(JSON.stringify(after).length).toBeLessThan(5_000);
  expect(JSON.stringify(after)).toContain("…");
});
