import { describe, expect, test } from "vitest";
import { RoleSpec } from "../../../core/manifests/role.ts";
import { aDeletedObject, anObject, managerOfIt } from "../../test/builders.ts";
import { parseSpec } from "../spec.ts";
import type { ObservedRole, StoredRole } from "./gather.ts";
import { planRole } from "./plan.ts";

const manager = managerOfIt("Role");
const spec = { name: "editor", description: "Edits.", permissions: ["a.read", "a.write"] };

const aRole = (more: Partial<StoredRole> = {}): StoredRole => ({
  roleId: "role_1",
  name: "editor",
  description: "Edits.",
  permissions: ["a.write", "a.read"],
  manager,
  ...more,
});

function observed(more: Partial<ObservedRole> & { spec?: unknown } = {}): ObservedRole {
  const object = more.object ?? anObject("Role", more.spec ?? spec);
  return { object, parsed: parseSpec(RoleSpec, object), manager, stored: undefined, claimants: [object], ...more };
}

test("Role plan creates a missing role", () => {
  expect(planRole(observed())).toMatchObject({
    actions: [{ type: "create", name: "editor", description: "Edits.", permissions: ["a.read", "a.write"] }],
    verdict: { state: "Progressing" },
  });
});

test("Role plan ignores order and spelling of equal permissions", () => {
  const plan = planRole(observed({ stored: aRole({ permissions: ["A.Write", "a.read"] }) }));
  expect(plan).toMatchObject({ actions: [], verdict: { state: "Ready" }, status: { roleId: "role_1" } });
});

test.each([
  {
    name: "its name",
    stored: aRole({ name: "old" }),
    actions: [{ type: "update", roleId: "role_1", name: "editor", adopt: false }],
  },
  {
    name: "its description",
    stored: aRole({ description: undefined }),
    actions: [{ type: "update", description: "Edits." }],
  },
  {
    name: "its permissions",
    stored: aRole({ permissions: ["a.read"] }),
    actions: [{ type: "setPermissions", permissions: spec.permissions }],
  },
  {
    name: "all of them",
    stored: aRole({ name: "old", permissions: [] }),
    actions: [{ type: "update" }, { type: "setPermissions" }],
  },
])("Role plan updates only $name when it differs", ({ stored, actions }) => {
  const plan = planRole(observed({ stored }));
  expect(plan.actions).toHaveLength(actions.length);
  expect(plan.actions).toMatchObject(actions);
});

test("Role plan removes a stored description that is empty or omitted", () => {
  const { description: _, ...bare } = spec;
  expect(planRole(observed({ spec: bare, stored: aRole() })).actions).toMatchObject([
    { type: "update", description: null },
  ]);
  expect(
    planRole(observed({ spec: { ...spec, description: "" }, stored: aRole({ description: undefined }) })).actions,
  ).toEqual([]);
});

test("Role plan of an invalid spec stalls with locations and without actions", () => {
  const plan = planRole(observed({ spec: { name: "editor", permissions: ["a b"], color: "red" }, stored: aRole() }));
  expect(plan).toMatchObject({
    actions: [],
    verdict: { state: "Stalled", reason: "InvalidSpec" },
    status: { roleId: "role_1" },
  });
  expect(plan.verdict.message).toContain("spec.permissions[0]");
});

describe("a role that belongs to another object", () => {
  const elder = anObject("Role", spec, { name: "elder", creationTimestamp: "2025-01-01T00:00:00Z" });
  const unmanaged = aRole({ manager: undefined });

  test("Role plan assigns a role to the older of two manifests", () => {
    const plan = planRole(observed({ claimants: [elder, observed().object] }));
    expect(plan).toMatchObject({ actions: [], verdict: { state: "Stalled", reason: "Conflict" } });
    expect(plan.verdict.message).toContain("Role shop/elder");
  });

  test("Role plan keeps the current owner when an older manifest claims the role later", () => {
    expect(planRole(observed({ stored: aRole(), claimants: [elder, observed().object] })).verdict.state).toBe("Ready");
  });

  test("Role plan respects the manager of a stored role", () => {
    const plan = planRole(observed({ stored: aRole({ manager: "other/Role/shop/it" }) }));
    expect(plan).toMatchObject({
      actions: [],
      verdict: { state: "Stalled", reason: "Conflict" },
      status: { roleId: undefined },
    });
    expect(plan.verdict.message).toContain("managed by a Role of the cluster other");
  });

  test.each([
    { name: "is left alone without adopt", adopt: undefined, stored: unmanaged, actions: [] },
    {
      name: "is taken over by match when it is equal",
      adopt: "Match",
      stored: unmanaged,
      actions: [{ type: "update", adopt: true }],
    },
    {
      name: "is left alone by match when it differs",
      adopt: "Match",
      stored: { ...unmanaged, permissions: [] },
      actions: [],
    },
    {
      name: "is taken over and changed by override",
      adopt: "Override",
      stored: { ...unmanaged, permissions: [] },
      actions: [{ type: "update", adopt: true }, { type: "setPermissions" }],
    },
  ])("Role plan handles an unmanaged role by `adopt`: $name", ({ adopt, stored, actions }) => {
    const plan = planRole(observed({ spec: { ...spec, ...(adopt ? { adopt } : {}) }, stored }));
    expect(plan.actions).toHaveLength(actions.length);
    expect(plan.actions).toMatchObject(actions);
    expect(plan.verdict.reason).toBe(actions.length === 0 ? "Conflict" : "Progressing");
  });
});

describe("the object is deleted", () => {
  const deleted = (more: object, stored: StoredRole | undefined) =>
    planRole(observed({ object: aDeletedObject("Role", { ...spec, ...more }), stored }));

  test.each([
    { name: "its role is deleted unless keys have it", more: {}, type: "delete", onlyIfUnused: true },
    {
      name: "its role is deleted when it says so",
      more: { deletionPolicy: "Delete" },
      type: "delete",
      onlyIfUnused: false,
    },
    { name: "its role is released with Orphan", more: { deletionPolicy: "Orphan" }, type: "release" },
    {
      name: "its role is deleted also when the spec does not parse",
      more: { permissions: 7 },
      type: "delete",
      onlyIfUnused: true,
    },
    {
      name: "and released when that is all that can be read",
      more: { permissions: 7, deletionPolicy: "Orphan" },
      type: "release",
    },
  ])("deleting a Role follows its deletion policy: $name", ({ name: _, more, ...action }) =>
    expect(deleted(more, aRole()).actions).toEqual([{ ...action, roleId: "role_1" }]),
  );

  test("deleting a Role leaves a role of another manager unchanged", () => {
    expect(deleted({}, aRole({ manager: undefined }))).toMatchObject({ actions: [], released: true });
    expect(deleted({}, undefined)).toMatchObject({ actions: [], released: true });
  });
});
