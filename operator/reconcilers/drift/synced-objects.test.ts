import { expect, test } from "vitest";
import { anObject } from "../../test/builders.ts";
import { ready } from "../plan.ts";
import { createSyncedObjects, type Settled } from "./synced-objects.ts";

const RESYNC_MS = 1_000;
const role = anObject("Role", {});
const result = { verdict: ready("It is in the store."), status: { roleId: "role_1" } };
const asSeen = (more: Partial<Settled> = {}): Settled => ({
  object: role,
  result,
  digest: "d1",
  seenAtMs: 100,
  ...more,
});

/** Returns one role, in sync at time 100. */
function aSyncedRole() {
  const synced = createSyncedObjects(RESYNC_MS, () => 0);
  synced.settle(asSeen(), synced.begin(role));
  const [one] = synced.list("Role");
  if (one === undefined) throw new Error("it is not settled");
  return { synced, one };
}

test("SyncedObjects skips a read of an unchanged object within the resync period", () => {
  const { synced } = aSyncedRole();
  expect(synced.recall(role, 1_099)?.result).toBe(result);
  expect(synced.recall(role, 1_100)).toBeUndefined();
});

test("SyncedObjects counts a matching digest in a list as a read at the time of the list request", () => {
  const { synced, one } = aSyncedRole();
  expect(synced.show(one, "d1", 900)).toBe(false);
  expect(synced.recall(role, 1_899)).toMatchObject({ seenAtMs: 900 });
  expect(synced.recall(role, 1_900)).toBeUndefined();
});

test.each([
  { name: "another digest", digest: "d2" },
  { name: "none, as of an object that was deleted or has another manager", digest: undefined },
])("SyncedObjects requires a read after a list with $name", ({ digest }) => {
  const { synced, one } = aSyncedRole();
  expect(synced.show(one, digest, 200)).toBe(true);
  expect(synced.recall(role, 201)).toBeUndefined();
  expect(synced.list("Role")).toEqual([]);
});

test.each([
  { name: "a new generation", object: anObject("Role", {}, { generation: 2 }) },
  { name: "a new object of the same name", object: anObject("Role", {}, { uid: "another" }) },
  { name: "its deletion", object: anObject("Role", {}, { deletionTimestamp: "2026-01-02T00:00:00Z" }) },
  { name: "an object of another kind and the same name", object: anObject("RatelimitNamespace", {}) },
])("SyncedObjects returns nothing for $name", ({ object }) => {
  expect(aSyncedRole().synced.recall(object, 101)).toBeUndefined();
});

test("SyncedObjects discards a read that overlaps a change or a newer read", () => {
  const synced = createSyncedObjects(RESYNC_MS);
  const overtaken = synced.begin(role);
  synced.forget("Role", role.metadata);
  synced.settle(asSeen(), overtaken);
  expect(synced.list("Role")).toEqual([]);
  const first = synced.begin(role);
  const second = synced.begin(role);
  synced.settle(asSeen({ digest: "old" }), first);
  expect(synced.list("Role")).toEqual([]);
  synced.settle(asSeen({ digest: "new" }), second);
  expect(synced.list("Role")).toMatchObject([{ digest: "new" }]);
});

test("SyncedObjects ignores a list requested before the last read", () => {
  const { synced, one } = aSyncedRole();
  synced.settle(asSeen({ digest: "d2", seenAtMs: 300 }), synced.begin(role));
  expect(synced.show(one, "d1", 200)).toBe(false);
  expect(synced.recall(role, 301)).toMatchObject({ digest: "d2", seenAtMs: 300 });
});

test("SyncedObjects requires a new read of each object after a few hours, at staggered times", () => {
  const hoursOf = (random: number): number => {
    const synced = createSyncedObjects(300_000, () => random);
    synced.settle(asSeen({ seenAtMs: 0 }), synced.begin(role));
    for (let atMs = 60_000; ; atMs += 60_000) {
      const [one] = synced.list("Role");
      if (one === undefined || synced.recall(role, atMs) === undefined) return atMs / 3_600_000;
      synced.show(one, "d1", atMs);
    }
  };
  expect(hoursOf(0)).toBe(6);
  expect(hoursOf(1)).toBe(3);
});
