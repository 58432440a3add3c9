import { expect, test } from "vitest";
import type { Condition } from "../../core/manifests/conditions.ts";
import { anObject } from "../test/builders.ts";
import { progressing, ready, stalled, type Verdict } from "./plan.ts";
import { statusOf, wasReady, withReconciling } from "./status.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const input = (verdict: Verdict, status?: unknown, generation = 1) => ({
  object: anObject("Role", {}, { status, generation }),
  verdict,
  conditions: [],
  own: { roleId: "role_1" },
  nowMs: NOW_MS,
});
const typesOf = (status: unknown) => (status as { conditions: Condition[] }).conditions.map(({ type }) => type);

test("Ready condition always exists, and Reconciling and Stalled exist only while they are True", () => {
  const first = statusOf(input(progressing("DependencyNotReady", "waits"))).status;
  expect(typesOf(first)).toEqual(["Ready", "Reconciling"]);
  const second = statusOf(input(stalled("Conflict", "taken"), first)).status;
  expect(typesOf(second)).toEqual(["Ready", "Stalled"]);
  const third = statusOf(input(ready("done"), second)).status;
  expect(typesOf(third)).toEqual(["Ready"]);
  expect(third).toMatchObject({ roleId: "role_1", observedGeneration: 1 });
});

test("status is written only when it changes", () => {
  const { status } = statusOf(input(ready("done")));
  expect(statusOf({ ...input(ready("done"), status), nowMs: NOW_MS + 86_400_000 })).toEqual({ events: [] });
});

test("status fields unknown to this version are removed", () => {
  const { status } = statusOf(input(ready("done")));
  const older = { ...status, lastSyncTime: "2026-03-01T11:00:00Z" };
  expect(statusOf(input(ready("done"), older))).toEqual({ status, events: [] });
});

test("lastTransitionTime changes only with the status of the condition", () => {
  const { status } = statusOf(input(stalled("Conflict", "one")));
  const later = statusOf({ ...input(stalled("InvalidSpec", "two"), status), nowMs: NOW_MS + 60_000 }).status;
  const ready = (later as { conditions: Condition[] }).conditions[0];
  expect(ready).toMatchObject({ reason: "InvalidSpec", lastTransitionTime: "2026-03-01T12:00:00Z" });
});

test("Event is emitted for a condition transition and not for a repeated status", () => {
  const first = statusOf(input(stalled("Conflict", "taken")));
  expect(first.events).toMatchObject([{ type: "Warning", reason: "Conflict", note: "taken" }]);
  expect(statusOf(input(stalled("Conflict", "taken by another"), first.status)).events).toEqual([]);
  expect(statusOf(input(ready("done"), first.status)).events).toMatchObject([{ type: "Normal", reason: "Succeeded" }]);
});

test("observedGeneration is updated even if all conditions are unchanged", () => {
  const { status } = statusOf(input(ready("done")));
  const next = statusOf(input(ready("done"), status, 2)).status;
  expect(next).toMatchObject({ observedGeneration: 2, conditions: [{ observedGeneration: 2 }] });
});

test("ids that are no longer known are removed from the status", () => {
  const { status } = statusOf(input(ready("done")));
  expect(statusOf({ ...input(ready("done"), status), own: { roleId: undefined } }).status).not.toHaveProperty("roleId");
});

test("invalid status is rewritten", () => {
  expect(typesOf(statusOf(input(ready("done"), { conditions: "broken" })).status)).toEqual(["Ready"]);
});

test("Ready condition applies only to its observed generation", () => {
  const { status } = statusOf(input(ready("done")));
  expect(wasReady(anObject("Role", {}, { status }))).toBe(true);
  expect(wasReady(anObject("Role", {}, { status, generation: 2 }))).toBe(false);
});

test("while the API is unavailable, the status gets the condition Reconciling once, and Ready is unchanged", () => {
  const { status } = statusOf(input(ready("done")));
  const object = anObject("Role", {}, { status });
  const away = progressing("ApiUnavailable", "unreachable");
  const added = withReconciling(object, away, NOW_MS);
  expect(typesOf(added)).toEqual(["Ready", "Reconciling"]);
  expect(added).toMatchObject({ conditions: [{ status: "True", reason: "Succeeded" }, { reason: "ApiUnavailable" }] });
  expect(withReconciling(anObject("Role", {}, { status: added }), away, NOW_MS)).toBeUndefined();
});

test("Event is emitted only when an alerting condition starts or ends", () => {
  const { status: before } = statusOf(input(ready("done")));
  const look = (holds: boolean, status: unknown, message = "late") =>
    statusOf({
      ...input(ready("done"), status),
      conditions: [
        { type: "Stale", status: holds ? "True" : "False", reason: "DataStale", message, alerts: true },
        { type: "Bypassable", status: "True", reason: "NotSupported", message: "no matter" },
      ],
    });
  const fresh = look(false, before);
  expect(fresh.events).toEqual([]);
  const stale = look(true, fresh.status);
  expect(stale.events).toEqual([{ type: "Warning", reason: "DataStale", action: "Stale", note: "late" }]);
  expect(look(true, stale.status, "later still").events).toEqual([]);
  expect(look(false, stale.status).events).toMatchObject([{ type: "Normal" }]);
  expect((stale.status as { conditions: object[] }).conditions.at(-2)).not.toHaveProperty("alerts");
});
