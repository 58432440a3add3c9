import { afterAll, beforeAll, expect, test } from "vitest";
import type { ApiClient } from "../../operator/api/client.ts";
import { conditionOf, type TestManifest } from "./operator-world.ts";
import { oneWorkspace, openReconcilerWorld, type ReconcilerWorld } from "./reconciler-world.ts";

/* An operator of another version than the api-server and the gates. */

let world: ReconcilerWorld;
beforeAll(async () => {
  world = await openReconcilerWorld();
});
afterAll(() => world?.close());

const policy = (name: string): TestManifest => ({
  kind: "ApiKeyPolicy",
  metadata: { name, namespace: "shop" },
  spec: { api: { name: `${name}-api` }, target: { port: 80 } },
});

/** Returns an API client like that of the next version: its specs contain a member that this version does not have. */
const asTheNextRelease = (change: object): ApiClient => ({
  call: (procedure, body) =>
    world.api.call(
      procedure,
      procedure === "managed.applyObject"
        ? { ...body, spec: { ...(body as unknown as { spec: object }).spec, ...change } }
        : body,
    ),
});

test("object of the next version with an unknown member stalls without immediate retries", async () => {
  const change = { condition: "at night" };
  const says = "body.spec.condition is not a known field";
  const one = policy("next");
  await world.apply(one);
  const { requeueAfterMs } = await world.work(one, {
    ...world.ctx,
    workspaces: oneWorkspace(asTheNextRelease(change)),
  });
  expect(requeueAfterMs).toBeGreaterThanOrEqual(30_000);
  const status = world.statusIn(one);
  for (const type of ["Ready", "Stalled"]) {
    const condition = conditionOf(status, type);
    expect(condition).toMatchObject({ reason: "InvalidSpec" });
    expect(condition?.message).toContain(says);
    expect(condition?.message).toContain("upgrade the api-servers first");
  }
  // After the upgrade of the api-server or the rollback of the operator no condition remains.
  await world.work(one);
  expect(conditionOf(world.statusIn(one), "Ready")).toMatchObject({ status: "True" });
});

test("policy status reports a gate that does not support the policy until the gate is upgraded", async () => {
  const one = policy("refused");
  await world.apply(one);
  await world.work(one);
  const { policyId, policyVersion } = world.statusIn(one) as { policyId: string; policyVersion: number };
  const { db, pods } = world.store.server.deps;
  const { rows } = await db.query<{ workspace_id: string }>("select workspace_id from policies where id = $1", [
    policyId,
  ]);
  const workspaceId = rows[0]?.workspace_id ?? "";
  const report = { workspaceId, policyId, generation: 0, version: 0, podId: "pod-1", stalenessMs: 10 };
  const reason = "format 3 is not known here, where 2 is the highest";
  await pods.report({ ...report, refused: { version: policyVersion, reason } });
  await pods.report({ ...report, podId: "pod-2", generation: 1, version: policyVersion });
  await world.work(one);
  const refused = world.statusIn(one);
  expect(conditionOf(refused, "Unsupported")).toMatchObject({ status: "True", reason: "UnsupportedFormat" });
  expect(conditionOf(refused, "Unsupported")?.message).toContain(`1 of 2 gates cannot enforce this generation`);
  expect(conditionOf(refused, "Unsupported")?.message).toContain(reason);
  expect(conditionOf(refused, "Enforced")).toMatchObject({ status: "False", reason: "UnsupportedFormat" });
  expect(refused.dataPlane).toMatchObject({ pods: 2, updated: 1, unsupported: 1 });
  await pods.report({ ...report, generation: 1, version: policyVersion });
  await world.work(one);
  const upgraded = world.statusIn(one);
  expect(conditionOf(upgraded, "Unsupported")).toMatchObject({ status: "False" });
  expect(conditionOf(upgraded, "Enforced")).toMatchObject({ status: "True" });
  expect(upgraded.dataPlane).not.toHaveProperty("unsupported");
});
