import fc from "fast-check";
import { expect, test } from "vitest";
import { applyPatch } from "../test/pods.ts";
import { patchOf } from "./json-patch.ts";

test("JSON patch transforms any object into any other", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (before, after) => {
      expect(applyPatch(before, patchOf(before, after))).toEqual(after);
    }),
    { numRuns: 500 },
  );
});

test("JSON patch contains only differences and escapes names", () => {
  const before = { a: { "x/y~z": 1, same: [1, 2] }, list: [{ n: 1 }, { n: 2 }], gone: 0 };
  const after = { a: { "x/y~z": 2, same: [1, 2] }, list: [{ n: 1 }, { n: 3, m: 4 }], new: {} };
  expect(patchOf(before, after)).toEqual([
    { op: "replace", path: "/a/x~1y~0z", value: 2 },
    { op: "replace", path: "/list/1/n", value: 3 },
    { op: "add", path: "/list/1/m", value: 4 },
    { op: "remove", path: "/gone" },
    { op: "add", path: "/new", value: {} },
  ]);
  expect(patchOf(before, structuredClone(before))).toEqual([]);
});
