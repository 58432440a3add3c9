import { expect, test } from "vitest";
import { RatelimitNamespaceSpec } from "../../../core/manifests/ratelimit-namespace.ts";
import { aDeletedObject, anObject, managerOfIt } from "../../test/builders.ts";
import { parseSpec } from "../spec.ts";
import type { ObservedNamespace, StoredNamespace } from "./gather.ts";
import { planNamespace } from "./plan.ts";

const manager = managerOfIt("RatelimitNamespace");
const own: StoredNamespace = { namespaceId: "rlns_1", name: "public", manager };
const unmanaged: StoredNamespace = { ...own, manager: undefined };

function observed(more: Partial<ObservedNamespace> & { spec?: unknown } = {}): ObservedNamespace {
  const object = more.object ?? anObject("RatelimitNamespace", more.spec ?? { name: "public" });
  const parsed = parseSpec(RatelimitNamespaceSpec, object);
  return { object, parsed, manager, stored: undefined, claimants: [object], ...more };
}

test("RatelimitNamespace plan creates a missing namespace and leaves an existing one unchanged", () => {
  expect(planNamespace(observed()).actions).toEqual([{ type: "create", name: "public" }]);
  expect(planNamespace(observed({ stored: own }))).toMatchObject({
    actions: [],
    verdict: { state: "Ready" },
    status: { namespaceId: "rlns_1" },
  });
});

test("RatelimitNamespace plan rejects a rename and keeps the stored name", () => {
  const plan = planNamespace(observed({ spec: { name: "other" }, stored: own }));
  expect(plan).toMatchObject({ actions: [], verdict: { reason: "InvalidSpec" }, status: { namespaceId: "rlns_1" } });
});

test("RatelimitNamespace plan adopts an unmanaged namespace only when requested", () => {
  expect(planNamespace(observed({ stored: unmanaged })).verdict).toMatchObject({
    state: "Stalled",
    reason: "Conflict",
  });
  for (const adopt of ["Match", "Override"]) {
    const plan = planNamespace(observed({ spec: { name: "public", adopt }, stored: unmanaged }));
    expect(plan.actions).toEqual([{ type: "adopt", name: "public" }]);
  }
});

test("RatelimitNamespace that another manager owns is a conflict and provides no id", () => {
  const elder = anObject(
    "RatelimitNamespace",
    { name: "public" },
    { name: "elder", creationTimestamp: "2025-01-01T00:00:00Z" },
  );
  for (const plan of [
    planNamespace(observed({ stored: { ...own, manager: "other/RatelimitNamespace/shop/it" } })),
    planNamespace(observed({ claimants: [elder, observed().object] })),
  ]) {
    expect(plan).toMatchObject({ actions: [], verdict: { reason: "Conflict" }, status: { namespaceId: undefined } });
  }
});

test.each([
  { deletionPolicy: undefined, stored: own, actions: [{ type: "delete", namespaceId: "rlns_1" }] },
  { deletionPolicy: "Orphan", stored: own, actions: [{ type: "release", namespaceId: "rlns_1" }] },
  { deletionPolicy: "Delete", stored: unmanaged, actions: [] },
  { deletionPolicy: "Delete", stored: undefined, actions: [] },
])(
  "deleting a RatelimitNamespace with deletion policy $deletionPolicy and stored object $stored plans $actions",
  ({ deletionPolicy, stored, actions }) => {
    const object = aDeletedObject("RatelimitNamespace", {
      name: "public",
      ...(deletionPolicy ? { deletionPolicy } : {}),
    });
    const plan = planNamespace(observed({ object, stored }));
    expect(plan.actions).toEqual(actions);
    expect(plan.released).toBe(actions.length === 0 ? true : undefined);
  },
);
