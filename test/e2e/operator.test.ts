import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import {
  conditionOf,
  openDirectoryWorld,
  openKubernetesWorld,
  type TestManifest,
  untilDisconnected,
  untilReason,
  type World,
} from "./operator-world.ts";

/* One scenario for manifests in a directory and in a real Kubernetes API. */

describe.each([
  { name: "a directory", open: openDirectoryWorld },
  { name: "Kubernetes", open: openKubernetesWorld },
])("manifests in $name", ({ open }) => {
  let world: World;
  beforeAll(async () => {
    world = await open();
  }, KUBERNETES_START_MS);
  afterAll(() => world?.close());

  const manifest = (
    kind: string,
    name: string,
    spec: Record<string, unknown>,
    namespace = world.namespace,
  ): TestManifest => ({
    kind,
    metadata: { name, namespace },
    spec,
  });
  const role = (name: string, spec: Record<string, unknown> = {}) =>
    manifest("Role", name, { name, permissions: ["a.read"], ...spec });
  const policy = (name: string, spec: Record<string, unknown> = {}) =>
    manifest("ApiKeyPolicy", name, { api: { name: `${name}-api` }, target: { port: 8080 }, ...spec });
  const managerOf = ({ kind, metadata }: TestManifest) => `test/${kind}/${metadata.namespace}/${metadata.name}`;
  const as = (one: TestManifest) => ({ "Postern-Manager": managerOf(one) });

  test("each of the four kinds becomes Ready and is stored as written", async () => {
    const editor = role("editor", { description: "Edits.", permissions: ["orders.read", "orders.write"] });
    const shared = manifest("RatelimitNamespace", "shared", { name: "shared-limits" });
    const premium = manifest("RatelimitOverride", "premium", {
      namespaceRef: { name: "shared" },
      identifier: "premium_*",
      limit: 5,
      duration: "1h",
      async: true,
    });
    const orders = policy("orders", {
      rules: [
        {
          match: { methods: ["POST"], path: { prefix: "/orders" } },
          permissions: "orders.write OR orders.admin",
          ratelimits: [{ namespace: "shared-limits", identifier: "Identity", limit: 10, duration: "60s" }],
        },
      ],
    });
    // Objects that refer to others are applied first, because the order must not matter.
    for (const one of [orders, premium, shared, editor]) await world.apply(one);
    const [roleStatus, namespaceStatus, overrideStatus, policyStatus] = await Promise.all(
      [editor, shared, premium, orders].map((one) => untilReason(world, one, "Succeeded")),
    );

    for (const status of [roleStatus, namespaceStatus, overrideStatus, policyStatus]) {
      const ready = conditionOf(status, "Ready");
      expect(ready).toMatchObject({ status: "True", observedGeneration: status?.observedGeneration });
      expect(conditionOf(status, "Stalled")).toBeUndefined();
      expect(conditionOf(status, "Reconciling")).toBeUndefined();
    }
    const stored = await world.call("permissions.getRole", { role: roleStatus?.roleId });
    expect(stored.data).toMatchObject({ name: "editor", description: "Edits." });
    expect(stored.data.permissions.map(({ slug }: { slug: string }) => slug).sort()).toEqual([
      "orders.read",
      "orders.write",
    ]);
    expect((await world.call("ratelimit.getNamespace", { namespace: "shared-limits" })).data.id).toBe(
      namespaceStatus?.namespaceId,
    );
    expect(
      (await world.call("ratelimit.getOverride", { namespace: "shared-limits", identifier: "premium_1" })).data,
    ).toEqual({
      overrideId: overrideStatus?.overrideId,
      identifier: "premium_*",
      limit: 5,
      duration: 3_600_000,
    });
    const { data } = await world.call("policies.getPolicy", { policyId: policyStatus?.policyId });
    expect(data).toMatchObject({
      name: `test/${world.namespace}/orders`,
      generation: policyStatus?.observedGeneration,
      policy: {
        apiId: policyStatus?.apiId,
        rules: [
          {
            permissions: "orders.write OR orders.admin",
            ratelimits: [
              {
                scope: { kind: "namespace", namespaceId: namespaceStatus?.namespaceId },
                limit: 10,
                durationMs: 60_000,
              },
            ],
          },
        ],
      },
    });
    expect(conditionOf(policyStatus, "Accepted")).toMatchObject({ status: "True" });
    expect(conditionOf(policyStatus, "Enforced")).toMatchObject({ status: "False", reason: "NoPods" });
  });

  test("edited limit is stored within a second", async () => {
    const rules = (limit: number) => [{ ratelimits: [{ name: "all", limit, duration: "1h" }] }];
    await world.apply(policy("edited", { rules: rules(10) }));
    const { policyId } = await untilReason(world, policy("edited"), "Succeeded");
    await world.apply(policy("edited", { rules: rules(1000) }));
    const editedAt = performance.now();
    await waitFor("the new limit", async () => {
      const { data } = await world.call("policies.getPolicy", { policyId });
      return data.policy.rules[0].ratelimits[0].limit === 1000;
    });
    expect(performance.now() - editedAt).toBeLessThan(1000);
  });

  test("API write to a managed object is rejected with an error that names the manifest", async () => {
    await world.apply(role("guarded"));
    await untilReason(world, role("guarded"), "Succeeded");
    const refused = await world.call("permissions.updateRole", { role: "guarded", name: "mine" });
    expect(refused).toMatchObject({ status: 409, error: { type: expect.stringMatching(/managed_by_manifest$/) } });
    expect(refused.error.detail).toContain(managerOf(role("guarded")));
  });

  test("policy with an invalid permission query is Stalled, and its last valid version stays active", async () => {
    const rules = (permissions: string) => [{ permissions }];
    await world.apply(policy("broken", { rules: rules("a AND b") }));
    const { policyId } = await untilReason(world, policy("broken"), "Succeeded");
    await world.apply(policy("broken", { rules: rules("a AND (b") }));
    const status = await untilReason(world, policy("broken"), "PermissionQueryInvalid");
    expect(conditionOf(status, "Stalled")).toMatchObject({ status: "True" });
    expect(conditionOf(status, "Accepted")).toMatchObject({ status: "False", reason: "PermissionQueryInvalid" });
    expect(conditionOf(status, "Ready")?.message).toContain("spec.rules[0].permissions");
    const { data } = await world.call("policies.getPolicy", { policyId });
    expect(data.policy.rules[0].permissions).toBe("a AND b");
    await world.apply(policy("broken", { rules: rules("a AND (b)") }));
    await untilReason(world, policy("broken"), "Succeeded");
  });

  test("override waits for a missing namespace and becomes Ready once the namespace exists", async () => {
    const override = manifest("RatelimitOverride", "early", {
      namespaceRef: { name: "late" },
      identifier: "acme",
      limit: 1,
      duration: "60s",
    });
    await world.apply(override);
    const status = await untilReason(world, override, "DependencyNotReady");
    expect(conditionOf(status, "Ready")?.message).toContain(`The RatelimitNamespace ${world.namespace}/late`);
    await world.apply(manifest("RatelimitNamespace", "late", { name: "late" }));
    await untilReason(world, override, "Succeeded");
  });

  test("older of two manifests owns a role, and the other takes over on deletion", async () => {
    const first = manifest("Role", "first", { name: "contested", permissions: ["one"] });
    const second = manifest("Role", "second", { name: "Contested", permissions: ["two"] });
    await world.apply(first);
    await untilReason(world, first, "Succeeded");
    await world.apply(second);
    const status = await untilReason(world, second, "Conflict");
    expect(conditionOf(status, "Stalled")).toMatchObject({ status: "True" });
    // The status of the second one names the owner. For equal ages the name decides.
    expect(conditionOf(status, "Stalled")?.message).toMatch(new RegExp(`Role[ /]${world.namespace}/first`));
    expect(conditionOf(await world.status(first), "Ready")).toMatchObject({ status: "True" });
    await world.remove(first);
    await untilDisconnected(world, first);
    await untilReason(world, second, "Succeeded");
    const { data } = await world.call("permissions.getRole", { role: "Contested" });
    expect(data.permissions).toMatchObject([{ slug: "two" }]);
  });

  test("cross-namespace reference needs permission", async () => {
    const target = (allowedNamespaces: string[]) =>
      manifest("RatelimitNamespace", "private", { name: "private", allowedNamespaces });
    const override = manifest(
      "RatelimitOverride",
      "foreign",
      { namespaceRef: { name: "private", namespace: world.namespace }, identifier: "acme", limit: 1, duration: "60s" },
      world.other,
    );
    await world.apply(target([]));
    await world.apply(override);
    const status = await untilReason(world, override, "NotAllowed");
    expect(conditionOf(status, "Stalled")?.message).toContain("spec.allowedNamespaces");
    await world.apply(target([world.other]));
    await untilReason(world, override, "Succeeded");
  });

  test("existing role is unchanged until the spec adopts it", async () => {
    const { data } = await world.call("permissions.createRole", { name: "grown", permissions: ["x"] });
    await world.apply(role("grown"));
    const status = await untilReason(world, role("grown"), "Conflict");
    expect(conditionOf(status, "Stalled")?.message).toContain("spec.adopt");
    await world.apply(role("grown", { adopt: "Match" }));
    await waitFor("the message to tell that they differ", async () =>
      conditionOf(await world.status(role("grown")), "Ready")?.message.includes("differs from this spec"),
    );
    await world.apply(role("grown", { adopt: "Override" }));
    const adopted = await untilReason(world, role("grown"), "Succeeded");
    expect(adopted.roleId).toBe(data.roleId);
    expect((await world.call("managed.getObject", { kind: "role", id: data.roleId })).data.manager).toBe(
      managerOf(role("grown")),
    );
  });

  test("drift of a managed object is reverted", async () => {
    await world.apply(role("drifting", { permissions: ["kept"] }));
    const { roleId } = await untilReason(world, role("drifting"), "Succeeded");
    const changed = await world.call(
      "permissions.setRolePermissions",
      { roleId, permissions: ["smuggled"] },
      as(role("drifting")),
    );
    expect(changed.status).toBe(200);
    await waitFor("the role to be as written", async () => {
      const { data } = await world.call("permissions.getRole", { role: roleId });
      return data.permissions.length === 1 && data.permissions[0].slug === "kept";
    });
  });

  test("renamed role keeps its id", async () => {
    const named = (name: string) => manifest("Role", "renamed", { name, permissions: ["a"] });
    await world.apply(named("before"));
    const { roleId } = await untilReason(world, named("before"), "Succeeded");
    await world.apply(named("after"));
    await waitFor("the new name", async () => {
      const { data } = await world.call("permissions.getRole", { role: roleId });
      return data.name === "after";
    });
  });

  test("deleting a manifest deletes its role or policy", async () => {
    await world.apply(role("mortal"));
    await world.apply(policy("mortal"));
    await untilReason(world, role("mortal"), "Succeeded");
    const { policyId } = await untilReason(world, policy("mortal"), "Succeeded");
    await world.remove(role("mortal"));
    await world.remove(policy("mortal"));
    await Promise.all([untilDisconnected(world, role("mortal")), untilDisconnected(world, policy("mortal"))]);
    expect(await world.call("permissions.getRole", { role: "mortal" })).toMatchObject({ status: 404 });
    expect(await world.call("policies.getPolicy", { policyId })).toMatchObject({ status: 404 });
  });

  test("deletion policy Orphan keeps the object unmanaged", async () => {
    const orphan = manifest("RatelimitNamespace", "orphan", { name: "orphan", deletionPolicy: "Orphan" });
    await world.apply(orphan);
    const { namespaceId } = await untilReason(world, orphan, "Succeeded");
    await world.apply(policy("orphaned"));
    const { apiId } = await untilReason(world, policy("orphaned"), "Succeeded");
    await world.remove(orphan);
    await world.remove(policy("orphaned"));
    await Promise.all([untilDisconnected(world, orphan), untilDisconnected(world, policy("orphaned"))]);
    expect((await world.call("managed.getObject", { kind: "namespace", id: namespaceId })).data).toEqual({
      kind: "namespace",
      id: namespaceId,
      lastManager: managerOf(orphan),
    });
    expect((await world.call("managed.getObject", { kind: "api", id: apiId })).data).toEqual({
      kind: "api",
      id: apiId,
      lastManager: managerOf(policy("orphaned")),
    });
  });

  test("deleted and reapplied policy gets its former API, and its keys still verify", async () => {
    const pruned = policy("pruned");
    await world.apply(pruned);
    const { apiId, policyId } = await untilReason(world, pruned, "Succeeded");
    const { data } = await world.call("keys.createKey", { apiId });
    await world.remove(pruned);
    await untilDisconnected(world, pruned);
    await world.apply(pruned);
    const again = await untilReason(world, pruned, "Succeeded");
    expect([again.apiId, again.policyId]).toEqual([apiId, policyId]);
    expect((await world.call("keys.verifyKey", { key: data.key })).data.code).toBe("VALID");
  });

  test("API with keys is not deleted with its policy", async () => {
    const keyed = policy("keyed", { deletionPolicy: "Delete" });
    await world.apply(keyed);
    const { apiId } = await untilReason(world, keyed, "Succeeded");
    const { data } = await world.call("keys.createKey", { apiId });
    await world.remove(keyed);
    const status = await untilReason(world, keyed, "HasKeys");
    expect(conditionOf(status, "Stalled")?.message).toContain("Orphan");
    expect(await world.call("apis.getApi", { apiId })).toMatchObject({ status: 200 });
    await world.call("keys.deleteKey", { keyId: data.keyId });
    await waitFor("the policy to be gone", async () => (await world.status(keyed)) === undefined, {
      deadlineMs: 40_000,
    });
    expect(await world.call("apis.getApi", { apiId })).toMatchObject({ status: 404 });
  });
});
