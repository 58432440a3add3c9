import { expect, test } from "vitest";
import { readDocuments } from "./documents.ts";
import { mergeDocuments, type Objects } from "./merge.ts";

const role = (name: string, permission = "a") => `apiVersion: postern.dev/v1alpha1
kind: Role
metadata: { name: ${name} }
spec: { name: ${name}, permissions: [${permission}] }
`;

let uids = 0;
function merge(files: Record<string, string>, objects: Objects = new Map(), nowMs = 1_000) {
  const read = Object.entries(files).map(([file, text]) => [file, readDocuments(file, text)] as const);
  return mergeDocuments({ objects, files: new Map(read), nowMs, makeUid: () => `uid-${++uids}` });
}
const one = (objects: Objects, id = "Role default/one") => {
  const object = objects.get(id);
  if (object === undefined) throw new Error(`there is no ${id}`);
  return object;
};

test("object loaded from a file gets a new uid, and the load time as its generation", () => {
  const { objects } = merge({ "a.yaml": role("one") });
  expect(one(objects)).toMatchObject({
    generation: 1_000,
    file: "a.yaml",
    finalizers: [],
    uid: expect.stringMatching(/^uid-/),
  });
});

test("unchanged object keeps its object identity after a reload", () => {
  const before = merge({ "a.yaml": role("one") }).objects;
  const after = merge({ "a.yaml": `# a comment\n${role("one")}` }, before, 2_000).objects;
  expect(one(after)).toBe(one(before));
});

test("changed spec increases the generation of the loaded object", () => {
  const before = merge({ "a.yaml": role("one") }).objects;
  const after = merge({ "a.yaml": role("one", "b") }, before, 2_000).objects;
  expect(one(after)).toMatchObject({ uid: one(before).uid, generation: 2_000, spec: { permissions: ["b"] } });
});

test("generation of a loaded object increases even when the clock goes back", () => {
  const before = merge({ "a.yaml": role("one") }, new Map(), 5_000).objects;
  expect(one(merge({ "a.yaml": role("one", "b") }, before, 10).objects).generation).toBe(5_001);
});

test("object without a document is listed as missing and kept", () => {
  const before = merge({ "a.yaml": role("one") }).objects;
  const { objects, missing } = merge({}, before);
  expect(missing).toEqual(["Role default/one"]);
  expect(one(objects)).toBe(one(before));
});

test("object that moves to another file stays the same object", () => {
  const before = merge({ "a.yaml": role("one") }).objects;
  const { objects, missing, problems } = merge({ "b.yaml": role("one") }, before);
  expect({ missing, problems }).toEqual({ missing: [], problems: [] });
  expect(one(objects)).toMatchObject({ uid: one(before).uid, generation: 1_000, file: "b.yaml" });
});

test("last valid version of an invalid document stays active", () => {
  const before = merge({ "a.yaml": role("one") }).objects;
  const broken = role("one").replace("permissions: [a]", "permissions: 7");
  const { objects, missing, problems } = merge({ "a.yaml": broken }, before, 2_000);
  expect(missing).toEqual([]);
  expect(problems).toHaveLength(1);
  expect(one(objects)).toBe(one(before));
});

test("objects of a file with an unidentifiable document are not reported as missing", () => {
  const before = merge({ "a.yaml": `${role("one")}---\n${role("two")}`, "b.yaml": role("three") }).objects;
  expect(merge({ "a.yaml": `${role("one")}---\n{ [` }, before).missing).toEqual(["Role default/three"]);
});

test("of two files that define the same object, the first one applies, unless the second one is already in use", () => {
  const both = { "a.yaml": role("one", "a"), "b.yaml": role("one", "b") };
  const fresh = merge(both);
  expect(one(fresh.objects)).toMatchObject({ file: "a.yaml" });
  expect(fresh.problems).toMatchObject([{ file: "b.yaml", object: "Role default/one" }]);
  const later = merge(both, merge({ "b.yaml": role("one", "b") }).objects);
  expect(one(later.objects)).toMatchObject({ file: "b.yaml", spec: { permissions: ["b"] } });
  expect(later.problems).toMatchObject([{ file: "a.yaml" }]);
});

test("object that is being deleted ignores a new document with its name", () => {
  const before = merge({ "a.yaml": role("one") }).objects;
  const deleted = { ...one(before), deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["x"] };
  const { objects, missing } = merge({ "a.yaml": role("one", "b") }, new Map([["Role default/one", deleted]]));
  expect(one(objects)).toBe(deleted);
  expect(missing).toEqual([]);
});
