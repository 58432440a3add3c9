import { expect, test } from "vitest";
import { MANAGED_KINDS } from "../../db/managed-objects.ts";
import { auditEvent } from "./changes.ts";
import { MANAGED } from "./resources.ts";

/** What was released and what was deleted, of each kind: people search the audit log for the names of events. */
const RECORDED = {
  api: [
    auditEvent(MANAGED.api, { id: "api_1", name: "orders" }, "Released"),
    auditEvent(MANAGED.api, { id: "api_1", name: "orders" }, "Deleted"),
  ],
  role: [
    auditEvent(MANAGED.role, { id: "role_1", name: "editor" }, "Released"),
    auditEvent(MANAGED.role, { id: "role_1", name: "editor" }, "Deleted"),
  ],
  permission: [
    auditEvent(MANAGED.permission, { id: "perm_1", slug: "orders.read" }, "Released"),
    auditEvent(MANAGED.permission, { id: "perm_1", slug: "orders.read" }, "Deleted"),
  ],
  namespace: [
    auditEvent(MANAGED.namespace, { id: "rlns_1", name: "public" }, "Released"),
    auditEvent(MANAGED.namespace, { id: "rlns_1", name: "public" }, "Deleted"),
  ],
  override: [
    auditEvent(
      MANAGED.override,
      { id: "rlor_1", identifier: "acme", namespace: { id: "rlns_1", name: "public" } },
      "Released",
    ),
    auditEvent(
      MANAGED.override,
      { id: "rlor_1", identifier: "acme", namespace: { id: "rlns_1", name: "public" } },
      "Deleted",
    ),
  ],
  key: [
    auditEvent(MANAGED.key, { id: "key_1", name: null, api_id: "api_1" }, "Released"),
    auditEvent(MANAGED.key, { id: "key_1", name: "Billing", api_id: "api_1" }, "Deleted"),
  ],
  policy: [
    auditEvent(MANAGED.policy, { id: "pol_1", name: "main/shop/orders", api_id: "api_1" }, "Released"),
    auditEvent(MANAGED.policy, { id: "pol_1", name: "main/shop/orders", api_id: "api_1" }, "Deleted"),
  ],
};

test.each([
  { kind: "api", events: ["api.update", "api.delete"], noun: "API api_1", targets: ["api api_1 orders"] },
  { kind: "role", events: ["role.update", "role.delete"], noun: "role role_1", targets: ["role role_1 editor"] },
  {
    kind: "permission",
    events: ["permission.update", "permission.delete"],
    noun: "permission perm_1",
    targets: ["permission perm_1 orders.read"],
  },
  {
    kind: "namespace",
    events: ["ratelimitNamespace.update", "ratelimitNamespace.delete"],
    noun: "rate-limit namespace rlns_1",
    targets: ["ratelimitNamespace rlns_1 public"],
  },
  {
    kind: "override",
    events: ["ratelimit.set_override", "ratelimit.delete_override"],
    noun: "override rlor_1",
    targets: ["ratelimitOverride rlor_1 acme", "ratelimitNamespace rlns_1 public"],
  },
  {
    kind: "key",
    events: ["key.update", "key.delete"],
    noun: "key key_1",
    targets: ["key key_1 Billing", "api api_1 -"],
  },
  {
    kind: "policy",
    events: ["policy.update", "policy.delete"],
    noun: "policy pol_1",
    targets: ["policy pol_1 main/shop/orders", "api api_1 -"],
  },
] as const)(
  "audit log describes release and deletion of an object of kind $kind",
  ({ kind, events, noun, targets }) => {
    const recorded = RECORDED[kind];
    expect(recorded.map(({ event }) => event)).toEqual(events);
    expect(recorded.map(({ description }) => description)).toEqual([`Released ${noun}`, `Deleted ${noun}`]);
    expect(recorded[1]?.targets.map(({ type, id, name = "-" }) => `${type} ${id} ${name}`)).toEqual(targets);
  },
);

test("audit tests cover every managed kind", () => {
  expect(Object.keys(RECORDED).sort()).toEqual([...MANAGED_KINDS].sort());
});

test("audit log entry of an unnamed key contains no name", () => {
  expect(JSON.parse(JSON.stringify(RECORDED.key[0]?.targets))).toEqual([
    { type: "key", id: "key_1" },
    { type: "api", id: "api_1" },
  ]);
});

test("audit log describes managed creations, changes and adoptions, and keeps custom descriptions", () => {
  const role = { id: "role_1", name: "editor" };
  const words = (["Created", "Updated", "Adopted"] as const).map((done) => auditEvent(MANAGED.role, role, done));
  expect(words.map(({ event, description }) => `${event}: ${description}`)).toEqual([
    "role.create: Created role role_1",
    "role.update: Updated role role_1",
    "role.update: Adopted role role_1",
  ]);
  expect(auditEvent(MANAGED.role, role, "Updated", "Renamed it")).toMatchObject({
    event: "role.update",
    description: "Renamed it",
  });
});
