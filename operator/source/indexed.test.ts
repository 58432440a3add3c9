import { expect, test } from "vitest";
import { anObject } from "../test/builders.ts";
import type { ManifestChange, ManifestObject, ManifestSource } from "./contract.ts";
import { createIndex, indexSource } from "./indexed.ts";

/** Indexes by each word of `spec.words` and by the Kubernetes namespace. */
const INDEXES = {
  word: ({ spec }: ManifestObject) => (spec as { words: string[] }).words,
  namespace: ({ metadata }: ManifestObject) => [metadata.namespace],
};
const aRole = (name: string, words: string[], more: Partial<ManifestObject["metadata"]> = {}) =>
  anObject("Role", { words }, { name, ...more });
const namesOf = (objects: readonly ManifestObject[]) => objects.map(({ metadata }) => metadata.name).sort();

test("object index finds objects by each of their current values, and not by former values", () => {
  const index = createIndex(INDEXES);
  const before = aRole("a", ["x", "y", "y"]);
  index.take({ kind: "Role", after: before });
  index.take({ kind: "Role", after: aRole("b", ["y"]) });
  expect(namesOf(index.having("Role", "word", "y"))).toEqual(["a", "b"]);
  const after = aRole("a", ["x", "z"], { uid: "another" });
  index.take({ kind: "Role", before, after });
  expect(index.having("Role", "word", "x")).toEqual([after]);
  expect(namesOf(index.having("Role", "word", "y"))).toEqual(["b"]);
  index.take({ kind: "Role", before: after });
  for (const word of ["x", "y", "z"]) expect(namesOf(index.having("Role", "word", word))).not.toContain("a");
  expect(namesOf(index.having("Role", "namespace", "shop"))).toEqual(["b"]);
});

test("object index separates kinds, indexes and namespaces with equal values", () => {
  const index = createIndex(INDEXES);
  index.take({ kind: "Role", after: aRole("a", ["shop", "namespace shop", ""]) });
  index.take({ kind: "ApiKey", after: anObject("ApiKey", { words: ["shop"] }, { name: "a", namespace: "bank" }) });
  index.take({ kind: "Role", after: aRole("a", ["q"], { namespace: "bank" }) });
  expect(index.having("Role", "word", "shop")).toHaveLength(1);
  expect(index.having("Role", "namespace", "shop")).toHaveLength(1);
  expect(index.having("Role", "word", "")).toHaveLength(1);
  expect(index.having("ApiKey", "word", "shop")).toHaveLength(1);
  expect(namesOf(index.having("Role", "namespace", "bank"))).toEqual(["a"]);
  expect(index.having("RatelimitOverride", "word", "shop")).toEqual([]);
});

test("object index is updated before its listeners are called", async () => {
  let report: (change: ManifestChange) => void = () => undefined;
  const start: ManifestSource["start"] = async (onChange) => {
    report = onChange;
  };
  const source = indexSource({ start } as ManifestSource, INDEXES);
  const seen: number[] = [];
  await source.start(() => seen.push(source.having("Role", "word", "x").length));
  const object = aRole("a", ["x"]);
  report({ kind: "Role", after: object });
  report({ kind: "Role", before: object });
  expect(seen).toEqual([1, 0]);
});
