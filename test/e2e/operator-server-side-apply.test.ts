import { afterAll, beforeAll, expect, test } from "vitest";
import { KUBERNETES_START_MS, type KubectlResult } from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import { openKubernetesWorld, resourceOf, type TestManifest, toJson, untilReason } from "./operator-world.ts";

/*
 * Several field managers of one object: GitOps, a user and the operator. The Kubernetes API separates their fields and rejects changes by
 * others.
 */

let world: Awaited<ReturnType<typeof openKubernetesWorld>>;
beforeAll(async () => {
  world = await openKubernetesWorld();
}, KUBERNETES_START_MS);
afterAll(() => world?.close());

const role = (name: string, spec: Record<string, unknown> = { permissions: ["orders.read"] }): TestManifest => ({
  kind: "Role",
  metadata: { name, namespace: world.namespace },
  spec: { name, ...spec },
});
const applyAs = (manager: string, one: object, ...more: string[]): Promise<KubectlResult> =>
  world.kubernetes.kubectl(
    ["apply", "--server-side", `--field-manager=${manager}`, ...more, "-f", "-"],
    toJson(one as TestManifest),
  );
const read = async (name: string) =>
  JSON.parse(
    (await world.kubernetes.kubectl(["-n", world.namespace, "get", resourceOf("Role"), name, "-o", "json"])).stdout,
  ) as { metadata: { finalizers?: string[]; generation: number }; spec: { permissions: string[] } };
const stored = async (roleId: unknown): Promise<{ description: string | undefined; permissions: string[] }> => {
  const { data } = await world.call("permissions.getRole", { role: roleId });
  const { description, permissions = [] } = data as { description?: string; permissions?: { slug: string }[] };
  return { description, permissions: permissions.map(({ slug }) => slug).sort() };
};

test("second field manager is rejected and the first value stays until forced", async () => {
  const ours = role("shared", { description: "of GitOps" });
  expect(await applyAs("gitops", ours)).toMatchObject({ exitCode: 0 });
  const { roleId } = await untilReason(world, ours, "Succeeded");

  const theirs = role("shared", { description: "by hand" });
  const refused = await applyAs("by-hand", theirs);
  expect(refused.exitCode).not.toBe(0);
  expect(refused.stderr).toMatch(/conflict with "gitops".*\.spec\.description/s);
  expect((await stored(roleId)).description).toBe("of GitOps");

  expect(await applyAs("by-hand", theirs, "--force-conflicts")).toMatchObject({ exitCode: 0 });
  await waitFor("the store to follow", async () => (await stored(roleId)).description === "by hand");
  expect((await applyAs("gitops", ours)).stderr).toMatch(/conflict with "by-hand"/);
});

test("server-side apply merges permissions of several managers as a set", async () => {
  const [ours, theirs] = [["orders.read", "orders.write"], ["orders.refund"]].map((permissions) =>
    role("union", { permissions }),
  ) as [TestManifest, TestManifest];
  await applyAs("gitops", ours);
  const { roleId } = await untilReason(world, ours, "Succeeded");
  expect(await applyAs("by-hand", theirs)).toMatchObject({ exitCode: 0 });
  const all = ["orders.read", "orders.refund", "orders.write"];
  await waitFor("all of them", async () => (await stored(roleId)).permissions.join() === all.join());
  await applyAs("gitops", role("union", { permissions: ["orders.read"] }));
  await waitFor("one less", async () => (await stored(roleId)).permissions.join() === "orders.read,orders.refund");
});

test("reapplying a manifest without the operator's fields keeps those fields", async () => {
  const ours = role("kept");
  await applyAs("gitops", ours);
  const { roleId } = await untilReason(world, ours, "Succeeded");
  const before = await read("kept");
  expect(before.metadata.finalizers).toHaveLength(1);
  await applyAs("gitops", ours);
  const after = await read("kept");
  expect(after.metadata).toMatchObject({
    finalizers: before.metadata.finalizers,
    generation: before.metadata.generation,
  });
  expect((await untilReason(world, ours, "Succeeded")).roleId).toBe(roleId);
});

test("operator restores its status after another manager overwrites it by force", async () => {
  const ours = role("claimed");
  await applyAs("gitops", ours);
  const { roleId } = await untilReason(world, ours, "Succeeded");
  const now = new Date().toISOString();
  const forged = {
    kind: ours.kind,
    metadata: ours.metadata,
    status: {
      roleId: "role_of_another",
      conditions: [{ type: "Ready", status: "False", reason: "Forged", message: "", lastTransitionTime: now }],
    },
  };
  const taken = await applyAs("intruder", forged, "--subresource=status", "--force-conflicts");
  expect(taken).toMatchObject({ exitCode: 0 });
  await waitFor("the status to be true again", async () => (await world.status(ours))?.roleId === roleId);
  await untilReason(world, ours, "Succeeded");
});
