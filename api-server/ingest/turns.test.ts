import { expect, test } from "vitest";
import { IngestScheduler, nextSlice, startingAfter } from "./turns.ts";

test.each([
  { name: "the one after the last comes first", ids: ["a", "b", "c"], last: "b", order: ["c", "a", "b"] },
  { name: "after the end of the list comes its beginning", ids: ["a", "b", "c"], last: "c", order: ["a", "b", "c"] },
  { name: "without a last one the list is unchanged", ids: ["b", "a"], last: undefined, order: ["b", "a"] },
  { name: "a last one that is gone skips none of the others", ids: ["a", "c"], last: "b", order: ["a", "c"] },
])("ingester processes workspaces in the expected order: $name", ({ ids, last, order }) =>
  expect(startingAfter(ids, last)).toEqual(order),
);

test("ingester polls a workspace with events immediately and idle ones up to a second later", () => {
  const turns = new IngestScheduler();
  turns.ended("ws_full", "stored", 0);
  for (let nowMs = 0; nowMs <= 10_000; nowMs += 100) {
    if (turns.due(["ws_empty"], nowMs).length > 0) turns.ended("ws_empty", "nothing", nowMs);
  }
  expect(turns.due(["ws_full", "ws_empty"], 10_050)).toEqual(["ws_full"]);
  expect(turns.due(["ws_empty"], 11_000)).toEqual(["ws_empty"]);
});

test("ingester delays a failing workspace by up to half a minute until it succeeds", () => {
  let turn = nextSlice(undefined, "failed", 0);
  expect(turn).toEqual({ dueAtMs: 200, delayMs: 200, failures: 1 });
  for (let i = 0; i < 20; i++) turn = nextSlice(turn, "failed", 0);
  expect(turn).toEqual({ dueAtMs: 30_000, delayMs: 30_000, failures: 21 });
  expect(nextSlice(turn, "nothing", 0).delayMs).toBe(1_000);
  expect(nextSlice(turn, "stored", 5)).toEqual({ dueAtMs: 5, delayMs: 0, failures: 0 });
});

test("ingester drops the state of deleted workspaces", () => {
  const turns = new IngestScheduler();
  for (let i = 0; i < 1_000; i++) turns.ended(`ws_${i}`, "failed", 0);
  turns.due(["ws_1"], 0);
  expect(turns.ended("ws_2", "failed", 0)).toBe(1);
  expect(turns.ended("ws_1", "failed", 0)).toBe(2);
});
