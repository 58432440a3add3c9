import { beforeEach, expect, test } from "vitest";
import { RollbackDetector } from "./rollback-detector.ts";

let rollbacks: RollbackDetector;
beforeEach(() => {
  rollbacks = new RollbackDetector();
});

/** Sends a request and observes its reply, with no event in between. */
const ask = (projectionId: string, head: number, stream = "ws_b") =>
  rollbacks.evaluate(stream, { projectionId, head }, rollbacks.known(stream));

test("RollbackDetector accepts equal or growing heads, both in entries and in replies about the state", () => {
  expect([ask("p9", 0), ask("p9", 4), ask("p9", 4)]).toEqual([true, true, true]);
  rollbacks.observe("ws_b", { projectionId: "p9", head: 7 });
  expect(ask("p9", 6)).toBe(false);
});

test("RollbackDetector accepts a reply older than an entry that arrived during the request", () => {
  ask("p9", 4);
  const before = rollbacks.known("ws_b");
  rollbacks.observe("ws_b", { projectionId: "p9", head: 5 });
  expect(rollbacks.evaluate("ws_b", { projectionId: "p9", head: 4 }, before)).toBe(true);
  expect(rollbacks.known("ws_b")).toEqual({ projectionId: "p9", head: 5 });
});

test("RollbackDetector still reports a rollback when the head grows past the known one", () => {
  ask("p9", 10);
  expect(ask("p9", 3)).toBe(false);
  expect(ask("p9", 11)).toBe(false);
  rollbacks.observe("ws_b", { projectionId: "p9", head: 12 });
  expect(rollbacks.isRolledBack("ws_b", "p9")).toBe(true);
});

test("RollbackDetector recovers with a new projection that starts at 0", () => {
  ask("p9", 10);
  ask("p9", 3);
  expect(ask("p1", 0)).toBe(true);
  expect(ask("p1", 1)).toBe(true);
});

test("RollbackDetector detects an earlier projection even with a higher head", () => {
  ask("p9", 10);
  ask("p1", 2);
  expect(ask("p9", 10)).toBe(false);
  expect(ask("p9", 500)).toBe(false);
  expect(ask("p5", 0)).toBe(true);
});

test("RollbackDetector ignores entries of the previous projection from a slow reader", () => {
  ask("p9", 10);
  ask("p1", 2);
  rollbacks.observe("ws_b", { projectionId: "p9", head: 10 });
  expect(rollbacks.isRolledBack("ws_b", "p9")).toBe(false);
  expect(rollbacks.known("ws_b")).toEqual({ projectionId: "p1", head: 2 });
  expect(ask("p1", 2)).toBe(true);
});

test("RollbackDetector tracks each change stream separately under one projection", () => {
  ask("p9", 10, "ws_b");
  ask("p9", 3, "ws_a");
  ask("p9", 1, "ws_b");
  expect([rollbacks.isRolledBack("ws_b", "p9"), rollbacks.isRolledBack("ws_a", "p9")]).toEqual([true, false]);
});

test("RollbackDetector remembers only the latest projections of a stream", () => {
  for (let i = 0; i < 1_000; i++) expect(ask(`p${i}`, 5)).toBe(true);
  expect(ask("p998", 5)).toBe(false);
});
