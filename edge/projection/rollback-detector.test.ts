import { beforeEach, expect, test } from "vitest";
import { RollbackDetector } from "./rollback-detector.ts";

let rollbacks: RollbackDetector;
beforeEach(() => {
  rollbacks = new RollbackDetector();
});

/** Sends a request and gets the reply, with nothing in between. */
const ask = (projectionId: string, head: number, stream = "ws_b") =>
  rollbacks.evaluate(stream, { projectionId, head }, rollbacks.known(stream));

test("a head may stay the same or grow, and heads from entries count like heads from marks", () => {
  expect([ask("p9", 0), ask("p9", 4), ask("p9", 4)]).toEqual([true, true, true]);
  rollbacks.observe("ws_b", { projectionId: "p9", head: 7 });
  expect(ask("p9", 6)).toBe(false);
});

test("an entry that arrived while a request was in flight does not make its reply distrusted", () => {
  ask("p9", 4);
  const before = rollbacks.known("ws_b");
  rollbacks.observe("ws_b", { projectionId: "p9", head: 5 });
  expect(rollbacks.evaluate("ws_b", { projectionId: "p9", head: 4 }, before)).toBe(true);
  expect(rollbacks.known("ws_b")).toEqual({ projectionId: "p9", head: 5 });
});

test("distrust does not end when the head grows past the known one, because entries in between are lost", () => {
  ask("p9", 10);
  expect(ask("p9", 3)).toBe(false);
  expect(ask("p9", 11)).toBe(false);
  rollbacks.observe("ws_b", { projectionId: "p9", head: 12 });
  expect(rollbacks.isRolledBack("ws_b", "p9")).toBe(true);
});

test("distrust ends with another projection, whose id may sort before the old one, and which begins at 0", () => {
  ask("p9", 10);
  ask("p9", 3);
  expect(ask("p1", 0)).toBe(true);
  expect(ask("p1", 1)).toBe(true);
});

test("an earlier projection in place of a later one is distrusted, however high its head is", () => {
  ask("p9", 10);
  ask("p1", 2);
  expect(ask("p9", 10)).toBe(false);
  expect(ask("p9", 500)).toBe(false);
  expect(ask("p5", 0)).toBe(true);
});

test("a follower that is behind still delivers entries of the previous projection, which is not a step back", () => {
  ask("p9", 10);
  ask("p1", 2);
  rollbacks.observe("ws_b", { projectionId: "p9", head: 10 });
  expect(rollbacks.isRolledBack("ws_b", "p9")).toBe(false);
  expect(rollbacks.known("ws_b")).toEqual({ projectionId: "p1", head: 2 });
  expect(ask("p1", 2)).toBe(true);
});

test("feeds are judged separately, also under one projection", () => {
  ask("p9", 10, "ws_b");
  ask("p9", 3, "ws_a");
  ask("p9", 1, "ws_b");
  expect([rollbacks.isRolledBack("ws_b", "p9"), rollbacks.isRolledBack("ws_a", "p9")]).toEqual([true, false]);
});

test("of a feed with ever new projections only the last ones are remembered", () => {
  for (let i = 0; i < 1_000; i++) expect(ask(`p${i}`, 5)).toBe(true);
  expect(ask("p998", 5)).toBe(false);
});
