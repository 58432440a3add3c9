import { expect, test } from "vitest";
import { findCircle } from "./circles.ts";

const graphOf = (edges: Record<string, string>) =>
  new Map(Object.entries(edges).map(([node, next]) => [node, next === "" ? [] : next.split(" ")]));

test.each([
  { name: "nothing", edges: {} },
  { name: "a chain", edges: { a: "b", b: "c", c: "" } },
  { name: "two ways to one place", edges: { a: "b c", b: "d", c: "d", d: "" } },
  { name: "what leads out of the graph", edges: { a: "b", b: "elsewhere" } },
])("cycle detection finds no cycle in $name", ({ edges }) =>
  expect(findCircle(graphOf(edges as Record<string, string>))).toBeUndefined(),
);

test.each([
  { name: "of one", edges: { a: "a" }, circle: ["a"] },
  { name: "of two, behind a way that leads to it", edges: { a: "b", b: "c", c: "b" }, circle: ["b", "c"] },
  { name: "of three, beside ways out of it", edges: { a: "x b", b: "c x", c: "x a", x: "" }, circle: ["a", "b", "c"] },
])("cycle detection finds a cycle $name", ({ edges, circle }) =>
  expect(findCircle(graphOf(edges as Record<string, string>))?.sort()).toEqual(circle),
);
