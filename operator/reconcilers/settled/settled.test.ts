import { expect, test } from "vitest";
import { anObject } from "../../test/builders.ts";
import { ready } from "../plan.ts";
import { createSettledObjects, type Settled } from "./settled.ts";

const RESYNC_MS = 1_000;
const role = anObject("Role", {});
const plan = { actions: [], verdict: ready("It is in the store."), status: { roleId: "role_1" } };
const asSeen = (more: Partial<Settled> = {}): Settled => ({ object: role, plan, digest: "d1", seenAtMs: 100, ...more });

/** One role, settled at 100. */
function aSettledRole() {
  const settled = createSettledObjects(RESYNC_MS, () => 0);
  settled.settle(asSeen(), settled.begin(role));
  const [one] = settled.list("Role");
  if (one === undefined) throw new Error("it is not settled");
  return { settled, one };
}

test("an object that was found as its manifest says is not read again within a resync period", () => {
  const { settled } = aSettledRole();
  expect(settled.recall(role, 1_099)?.plan).toBe(plan);
  expect(settled.recall(role, 1_100)).toBeUndefined();
});

test("a list with its digest counts as a look, from the time when it was asked for", () => {
  const { settled, one } = aSettledRole();
  expect(settled.show(one, "d1", 900)).toBe(false);
  expect(settled.recall(role, 1_899)).toMatchObject({ seenAtMs: 900 });
  expect(settled.recall(role, 1_900)).toBeUndefined();
});

test.each([
  { name: "another digest", digest: "d2" },
  { name: "none, as of an object that was deleted or has another manager", digest: undefined },
])("a list with $name makes a look due", ({ digest }) => {
  const { settled, one } = aSettledRole();
  expect(settled.show(one, digest, 200)).toBe(true);
  expect(settled.recall(role, 201)).toBeUndefined();
  expect(settled.list("Role")).toEqual([]);
});

test.each([
  { name: "a new generation", object: anObject("Role", {}, { generation: 2 }) },
  { name: "a new object of the same name", object: anObject("Role", {}, { uid: "another" }) },
  { name: "its deletion", object: anObject("Role", {}, { deletionTimestamp: "2026-01-02T00:00:00Z" }) },
  { name: "an object of another kind and the same name", object: anObject("RatelimitNamespace", {}) },
])("nothing is recalled for $name", ({ object }) => {
  expect(aSettledRole().settled.recall(object, 101)).toBeUndefined();
});

test("a look during which its object changed is not remembered, nor one that another overtook", () => {
  const settled = createSettledObjects(RESYNC_MS);
  const overtaken = settled.begin(role);
  settled.forget("Role", role.metadata);
  settled.settle(asSeen(), overtaken);
  expect(settled.list("Role")).toEqual([]);
  const first = settled.begin(role);
  const second = settled.begin(role);
  settled.settle(asSeen({ digest: "old" }), first);
  expect(settled.list("Role")).toEqual([]);
  settled.settle(asSeen({ digest: "new" }), second);
  expect(settled.list("Role")).toMatchObject([{ digest: "new" }]);
});

test("a list that was asked for before the last look says nothing", () => {
  const { settled, one } = aSettledRole();
  settled.settle(asSeen({ digest: "d2", seenAtMs: 300 }), settled.begin(role));
  expect(settled.show(one, "d1", 200)).toBe(false);
  expect(settled.recall(role, 301)).toMatchObject({ digest: "d2", seenAtMs: 300 });
});

test("it is read again after some hours, whatever the digests say, and not all objects at once", () => {
  const hoursOf = (random: number): number => {
    const settled = createSettledObjects(300_000, () => random);
    settled.settle(asSeen({ seenAtMs: 0 }), settled.begin(role));
    for (let atMs = 60_000; ; atMs += 60_000) {
      const [one] = settled.list("Role");
      if (one === undefined || settled.recall(role, atMs) === undefined) return atMs / 3_600_000;
      settled.show(one, "d1", atMs);
    }
  };
  expect(hoursOf(0)).toBe(6);
  expect(hoursOf(1)).toBe(3);
});
