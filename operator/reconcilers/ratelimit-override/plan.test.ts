import { describe, expect, test } from "vitest";
import { RatelimitOverrideSpec } from "../../../core/manifests/ratelimit-override.ts";
import { aDeletedObject, anObject, managerOfIt } from "../../test/builders.ts";
import { refusalOf } from "../namespace-ref.ts";
import { progressing } from "../plan.ts";
import { parseSpec } from "../spec.ts";
import type { ObservedOverride, StoredOverride } from "./gather.ts";
import { planOverride } from "./plan.ts";

const manager = managerOfIt("RatelimitOverride");
const spec = { namespaceRef: { name: "public" }, identifier: "acme", limit: 5, duration: "1h" };
const own: StoredOverride = {
  overrideId: "rlor_1",
  namespaceId: "rlns_1",
  identifier: "acme",
  limit: 5,
  durationMs: 3_600_000,
  async: false,
  manager,
};

function observed(more: Partial<ObservedOverride> & { spec?: unknown } = {}): ObservedOverride {
  const object = more.object ?? anObject("RatelimitOverride", more.spec ?? spec);
  return {
    object,
    parsed: parseSpec(RatelimitOverrideSpec, object),
    manager,
    namespace: { namespaceId: "rlns_1" },
    stored: undefined,
    former: undefined,
    claimants: [object],
    ...more,
  };
}

test("RatelimitOverride plan stores its duration in milliseconds and skips equal overrides", () => {
  const { overrideId: _, manager: __, ...desired } = own;
  expect(planOverride(observed()).actions).toEqual([{ type: "set", ...desired }]);
  expect(planOverride(observed({ stored: own }))).toMatchObject({
    actions: [],
    verdict: { state: "Ready" },
    status: { overrideId: "rlor_1", namespaceId: "rlns_1" },
  });
});

test.each([{ limit: 6 }, { durationMs: 1000 }, { async: true }])(
  "RatelimitOverride plan rewrites an override that differs in %o",
  (difference) => {
    expect(planOverride(observed({ stored: { ...own, ...difference } })).actions).toMatchObject([
      { type: "set", limit: 5 },
    ]);
  },
);

test("RatelimitOverride plan waits for its namespace and keeps the stored override", () => {
  const namespace = { verdict: progressing("DependencyNotReady", "There is no RatelimitNamespace shop/public.") };
  const plan = planOverride(observed({ namespace, stored: own }));
  expect(plan).toMatchObject({ actions: [], verdict: { state: "Progressing", reason: "DependencyNotReady" } });
  expect(plan.status).toEqual({ overrideId: "rlor_1", namespaceId: "rlns_1" });
});

test("RatelimitOverride plan deletes the former override first after an identifier change", () => {
  const former = { ...own, identifier: "before" };
  const plan = planOverride(observed({ former }));
  expect(plan.actions).toMatchObject([
    { type: "delete", identifier: "before" },
    { type: "set", identifier: "acme" },
  ]);
});

test("RatelimitOverride that another manager or no manager owns is a conflict", () => {
  const elder = anObject("RatelimitOverride", spec, { name: "elder", creationTimestamp: "2025-01-01T00:00:00Z" });
  for (const more of [
    { stored: { ...own, manager: "x/RatelimitOverride/shop/it" } },
    { stored: { ...own, manager: undefined } },
    { claimants: [elder, observed().object] },
  ]) {
    expect(planOverride(observed(more))).toMatchObject({
      actions: [],
      verdict: { state: "Stalled", reason: "Conflict" },
    });
  }
});

test.each([
  { name: "match takes over an equal one", adopt: "Match", difference: {}, isTaken: true },
  { name: "match leaves one that differs", adopt: "Match", difference: { limit: 6 }, isTaken: false },
  { name: "override takes over one that differs", adopt: "Override", difference: { limit: 6 }, isTaken: true },
  {
    name: "nothing takes over what another cluster left",
    adopt: "Override",
    difference: { lastManager: "x/RatelimitOverride/shop/it" },
    isTaken: false,
  },
])("RatelimitOverride plan handles an unmanaged override by `adopt`: $name", ({ adopt, difference, isTaken }) => {
  const plan = planOverride(
    observed({ spec: { ...spec, adopt }, stored: { ...own, manager: undefined, ...difference } }),
  );
  if (isTaken) expect(plan.actions).toMatchObject([{ type: "set", limit: 5, adopt: true }]);
  else expect(plan).toMatchObject({ actions: [], verdict: { state: "Stalled", reason: "Conflict" } });
});

test("deleting a RatelimitOverride deletes current and former overrides by deletion policy", () => {
  const former = { ...own, overrideId: "rlor_0", identifier: "before" };
  for (const [deletionPolicy, type] of [
    ["Delete", "delete"],
    ["Orphan", "release"],
  ] as const) {
    const object = aDeletedObject("RatelimitOverride", { ...spec, deletionPolicy });
    expect(planOverride(observed({ object, stored: own, former })).actions).toMatchObject([
      { type, identifier: "acme" },
      { type, identifier: "before" },
    ]);
    expect(planOverride(observed({ object, stored: { ...own, manager: undefined } }))).toMatchObject({
      released: true,
    });
  }
});

describe("a reference to a RatelimitNamespace", () => {
  const target = (more: { allowedNamespaces?: string[] } = {}) =>
    anObject("RatelimitNamespace", { name: "public", ...more });

  test.each([
    { name: "is allowed from its own namespace", of: target(), from: "shop", refused: undefined },
    {
      name: "is not allowed from another",
      of: target(),
      from: "lab",
      refused: { state: "Stalled", reason: "NotAllowed" },
    },
    { name: "unless it says so", of: target({ allowedNamespaces: ["lab"] }), from: "lab", refused: undefined },
    {
      name: "is not allowed by a spec that does not parse, whatever it lists",
      of: anObject("RatelimitNamespace", { allowedNamespaces: ["lab"], unknown: true }),
      from: "lab",
      refused: { state: "Stalled", reason: "NotAllowed" },
    },
    {
      name: "leads nowhere while that is being deleted",
      of: aDeletedObject("RatelimitNamespace", { name: "public" }),
      from: "shop",
      refused: { state: "Progressing", reason: "DependencyNotReady" },
    },
  ])("reference to a RatelimitNamespace is resolved or rejected: a namespace $name", ({ of, from, refused }) => {
    const refusal = refusalOf(of, from);
    if (refused === undefined) expect(refusal).toBeUndefined();
    else expect(refusal).toMatchObject(refused);
  });
});
