import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiClient, createStoreApi } from "../../operator/api/client.ts";
import type { OperatorContext } from "../../operator/reconcilers/context.ts";
import { freePort } from "../harness/ports.ts";
import { conditionOf, type Status, type TestManifest } from "./operator-world.ts";
import { oneWorkspace, openReconcilerWorld, type ReconcilerWorld } from "./reconciler-world.ts";

/*
 * An active policy gets a change that cannot be stored. Its conditions belong to the new generation and report that it is not enforced, and
 * which former one is.
 */

let world: ReconcilerWorld;
beforeAll(async () => {
  world = await openReconcilerWorld();
});
afterAll(() => world?.close());

const policy = (name: string, more: Record<string, unknown> = {}): TestManifest => ({
  kind: "ApiKeyPolicy",
  metadata: { name, namespace: "shop" },
  spec: { api: { name: `${name}-api` }, target: { port: 8080 }, ...more },
});
const CHANGE = { mode: "Audit" };

/** Returns a policy whose first generation is enforced by one gate. */
async function active(name: string): Promise<Status> {
  await world.apply(policy(name));
  const { policyId, policyVersion, workspaceId } = await world.reconcile(policy(name));
  const of = { workspaceId: String(workspaceId), policyId: String(policyId), podId: `shop/${name}` };
  await world.store.server.deps.pods.report({ ...of, generation: 1, version: Number(policyVersion), stalenessMs: 5 });
  const status = await world.reconcile(policy(name));
  expect(conditionOf(status, "Enforced")).toMatchObject({ status: "True" });
  return status;
}

/** Reconciles the policy with another context; a thrown error, which an operator would retry, is part of the case. */
async function polledAt(name: string, ctx: Partial<OperatorContext>): Promise<Status> {
  await world.work(policy(name), { ...world.ctx, ...ctx }).catch(() => undefined);
  return world.statusIn(policy(name));
}

const generationOf = (name: string) => world.objectOf(policy(name))?.metadata.generation;

function expectNotActive(name: string, status: Status, is: { accepted: string; enforced: string; reason: string }) {
  const observedGeneration = generationOf(name);
  expect(observedGeneration).not.toBe(1);
  expect(conditionOf(status, "Accepted")).toMatchObject({ status: is.accepted, reason: is.reason, observedGeneration });
  expect(conditionOf(status, "Enforced")).toMatchObject({ status: is.enforced, reason: is.reason, observedGeneration });
  expect(conditionOf(status, "Ready")).toMatchObject({ status: "False", reason: is.reason, observedGeneration });
}

test("policy with an invalid spec reports the generation and version that stay active", async () => {
  const { policyVersion } = await active("faulty");
  const generation = generationOf("faulty");
  await world.apply(policy("faulty", { rules: [{ permissions: "a AND" }] }));
  const status = await world.reconcile(policy("faulty"));
  expectNotActive("faulty", status, { accepted: "False", enforced: "False", reason: "PermissionQueryInvalid" });
  expect(conditionOf(status, "Enforced")?.message).toBe(
    `Generation ${generation} (version ${policyVersion}) remains active until this generation is accepted.`,
  );
  expect(status.policyVersion).toBe(policyVersion);
});

test("change rejected by the API is neither accepted nor enforced", async () => {
  await active("refused");
  await world.apply(policy("refused", CHANGE));
  // Before the call, the operator of another cluster takes the policy.
  const api: ApiClient = {
    ...world.api,
    call: async (...call: Parameters<ApiClient["call"]>) => {
      if (call[0] === "managed.applyObject") {
        const { policyId } = world.statusIn(policy("refused"));
        await world.store.sql("update policies set manager = 'other/ApiKeyPolicy/shop/refused' where id = $1", [
          policyId,
        ]);
      }
      return await world.api.call(...call);
    },
  } as ApiClient;
  const status = await polledAt("refused", { workspaces: oneWorkspace(api) });
  expectNotActive("refused", status, { accepted: "False", enforced: "False", reason: "Conflict" });
});

test("policy in a namespace without a workspace reports nothing about stored state", async () => {
  const { policyVersion } = await active("nowhere");
  await world.apply(policy("nowhere", CHANGE));
  const place = { reason: "none", message: "The namespace shop acts in no workspace." } as const;
  const status = await polledAt("nowhere", { workspaces: { ...world.ctx.workspaces, resolve: () => place } });
  expectNotActive("nowhere", status, { accepted: "False", enforced: "False", reason: "WorkspaceNotFound" });
  expect(conditionOf(status, "Enforced")?.message).toContain("status.policyVersion is its");
  expect(status.policyVersion).toBe(policyVersion);
});

test("unavailable API leaves the conditions Accepted and Enforced Unknown", async () => {
  await active("away");
  await world.apply(policy("away", CHANGE));
  const api = createStoreApi({ url: `http://127.0.0.1:${await freePort()}`, rootKey: () => "any" });
  const status = await polledAt("away", { workspaces: oneWorkspace(api) });
  expectNotActive("away", status, { accepted: "Unknown", enforced: "Unknown", reason: "ApiUnavailable" });
  const back = await world.reconcile(policy("away"));
  expect(conditionOf(back, "Accepted")).toMatchObject({ status: "True", observedGeneration: generationOf("away") });
});
