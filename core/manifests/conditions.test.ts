import { describe, expect, test } from "vitest";
import { Condition, makeCondition, removeCondition, setCondition } from "./conditions.ts";

const ready = makeCondition({
  type: "Ready",
  status: "True",
  reason: "Succeeded",
  message: "in step",
  observedGeneration: 1,
  nowMs: 1_000,
});

test("status condition is valid for Kubernetes", () => {
  expect(Condition.parse(ready)).toEqual({
    type: "Ready",
    status: "True",
    reason: "Succeeded",
    message: "in step",
    observedGeneration: 1,
    lastTransitionTime: "1970-01-01T00:00:01Z",
  });
});

test("status condition truncates a message that is too long", () => {
  const long = makeCondition({
    type: "Ready",
    status: "False",
    reason: "Failed",
    message: "x".repeat(40_000),
    nowMs: 0,
  });
  expect(Condition.parse(long).message).toHaveLength(32_768);
});

describe("setting a condition", () => {
  test("setCondition appends a new condition type", () => {
    const stalled = { ...ready, type: "Stalled" };
    expect(setCondition([ready], stalled)).toEqual([ready, stalled]);
  });

  test("setCondition keeps lastTransitionTime while the status is unchanged", () => {
    const later = makeCondition({
      type: "Ready",
      status: "True",
      reason: "Succeeded",
      message: "other",
      observedGeneration: 2,
      nowMs: 9_000,
    });
    expect(setCondition([ready], later)).toEqual([{ ...later, lastTransitionTime: ready.lastTransitionTime }]);
  });

  test("setCondition updates lastTransitionTime when the status changes", () => {
    const later = makeCondition({ type: "Ready", status: "False", reason: "Conflict", message: "", nowMs: 9_000 });
    expect(setCondition([ready], later)[0]?.lastTransitionTime).toBe("1970-01-01T00:00:09Z");
  });

  test("setCondition returns the same list when nothing changes", () => {
    const conditions = [ready];
    expect(setCondition(conditions, { ...ready, lastTransitionTime: "2026-01-01T00:00:00Z" })).toBe(conditions);
    expect(removeCondition(conditions, "Stalled")).toBe(conditions);
    expect(removeCondition(conditions, "Ready")).toEqual([]);
  });
});
