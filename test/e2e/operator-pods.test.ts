import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import {
  conditionOf,
  eventsOf,
  type KubernetesEvent,
  openKubernetesWorld,
  type Status,
  type TestManifest,
  untilReason,
} from "./operator-world.ts";
import { type PodOptions, runPod } from "./running-pods.ts";

/*
 * Whether a policy is enforced at the pods that it selects. The pods are objects of a real API server without nodes, so the test sets their
 * state and reports as their gates would.
 */

let world: Awaited<ReturnType<typeof openKubernetesWorld>>;
beforeAll(async () => {
  world = await openKubernetesWorld();
}, KUBERNETES_START_MS);
afterAll(() => world?.close());

const running: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((stop) => stop()));
});

const policy = (name: string, app: string, labels: Record<string, string> = {}): TestManifest => ({
  kind: "ApiKeyPolicy",
  metadata: { name, namespace: world.namespace },
  spec: {
    api: { name: `${name}-api` },
    target: { port: 8080 },
    selector: { matchLabels: { app, ...labels } },
  },
});

async function startPod(name: string, options: PodOptions): Promise<() => Promise<unknown>> {
  const stop = await runPod(world, name, options);
  running.push(stop);
  return stop;
}

/** Reports the stored version for the gates of these pods until the test ends or the returned function is called. */
async function reportFrom(one: TestManifest, podNames: readonly string[], more: object = {}): Promise<() => void> {
  const { db, pods } = world.server.deps;
  const { policyId } = (await world.status(one)) ?? {};
  const report = async () => {
    const { rows } = await db.query<{ workspace_id: string; version: number }>(
      "select workspace_id, version from policies where id = $1",
      [policyId],
    );
    const [row] = rows;
    if (row === undefined) return;
    for (const name of podNames) {
      const ref = { workspaceId: row.workspace_id, policyId: String(policyId), podId: `${world.namespace}/${name}` };
      await pods.report({ ...ref, generation: 1, version: row.version, stalenessMs: 20, ...more });
    }
  };
  await report();
  const timer = setInterval(() => void report(), 3_000);
  running.push(async () => clearInterval(timer));
  return () => clearInterval(timer);
}

/** Waits until the condition has this reason. */
const until = async (one: TestManifest, type: string, reason: string): Promise<Status> => {
  let last: unknown;
  return await waitFor(
    `${type} of ${one.metadata.name} to be ${reason}`,
    async () => {
      const status = await world.status(one);
      last = conditionOf(status, type);
      return conditionOf(status, type)?.reason === reason ? status : undefined;
    },
    { deadlineMs: 20_000 },
  ).catch((error: unknown) => {
    throw new Error(`the last was ${JSON.stringify(last)}`, { cause: error });
  });
};

test("policy is not enforced while a running pod has no gate", async () => {
  const orders = policy("orders", "orders");
  await world.apply(orders);
  await untilReason(world, orders, "Succeeded");
  await startPod("orders-1", { app: "orders", gate: true });
  await startPod("orders-2", { app: "orders", gate: true });
  await reportFrom(orders, ["orders-1", "orders-2"]);
  const enforced = await until(orders, "Enforced", "Succeeded");
  expect(enforced).toMatchObject({ dataPlane: { pods: 2, updated: 2, unguarded: 0 }, workspaceId: expect.any(String) });
  expect(conditionOf(enforced, "Enforced")?.message).toContain(
    "2 of the pods do not have the label postern.dev/guarded",
  );

  // None of these pods is a serving pod of the policy.
  await startPod("other-app", { app: "other" });
  await startPod("pending", { app: "orders", phase: "Pending" });
  await startPod("done", { app: "orders", phase: "Succeeded" });
  await startPod("elsewhere", { app: "orders", namespace: world.other });
  const stop = await startPod("orders-bare", { app: "orders" });
  const bare = await until(orders, "Enforced", "UnguardedPods");
  expect(conditionOf(bare, "Enforced")).toMatchObject({ status: "False" });
  expect(conditionOf(bare, "Enforced")?.message).toMatch(/^1 of the 3 running pods/);
  expect(bare).toMatchObject({ dataPlane: { pods: 2, updated: 2, unguarded: 1 } });
  const isUnguarded = ({ reason }: KubernetesEvent) => reason === "UnguardedPods";
  const event = await waitFor("the Event", async () => (await eventsOf(world, "orders")).find(isUnguarded));
  expect(event.note).toContain("orders-bare");
  await stop();
  expect(await until(orders, "Enforced", "Succeeded")).toMatchObject({ dataPlane: { unguarded: 0 } });
}, 90_000);

test("gate without a report, or with another policy, does not count as enforcing the policy", async () => {
  const billing = policy("billing", "billing", { tier: "front" });
  await world.apply(billing);
  await untilReason(world, billing, "Succeeded");
  const labels = { tier: "front", "postern.dev/guarded": "true" };
  await startPod("billing-1", { app: "billing", gate: true, labels });
  await startPod("billing-2", { app: "billing", gate: true, labels });
  await reportFrom(billing, ["billing-1"]);
  const following = await until(billing, "Enforced", "Progressing");
  expect(conditionOf(following, "Enforced")?.message).toContain("1 of the 2 running pods with a gate have reported");
  await reportFrom(billing, ["billing-2"]);
  const enforced = await until(billing, "Enforced", "Succeeded");
  expect(conditionOf(enforced, "Enforced")?.message).toBe("All 2 gates enforce this generation.");
  const annotations = { "postern.dev/policy": "former" };
  await startPod("billing-3", { app: "billing", gate: true, labels, annotations });
  await until(billing, "Enforced", "UnguardedPods");
}, 90_000);

test("older of two policies guards a pod, and the other is Stalled", async () => {
  const older = policy("older", "shared");
  await world.apply(older);
  await untilReason(world, older, "Succeeded");
  // Creation times have a resolution of one second, and the older policy wins.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  const younger = policy("younger", "shared", { tier: "back" });
  await world.apply(younger);
  await untilReason(world, younger, "Succeeded");
  await startPod("shared-1", { app: "shared", gate: true, labels: { tier: "back" } });
  const stalled = await untilReason(world, younger, "Conflict");
  expect(conditionOf(stalled, "Stalled")?.message).toContain(
    `ApiKeyPolicy ${world.namespace}/older is older and guards 1`,
  );
  expect(conditionOf(await world.status(older), "Ready")).toMatchObject({ status: "True" });
  await world.remove(older);
  await untilReason(world, younger, "Succeeded");
}, 90_000);

test("report of a deleted pod does not replace the missing report of its successor", async () => {
  const depot = policy("depot", "depot");
  await world.apply(depot);
  await untilReason(world, depot, "Succeeded");
  const of = { app: "depot", gate: true, annotations: { "postern.dev/policy": "depot" } };
  const stopOld = await startPod("depot-old", of);
  await reportFrom(depot, ["depot-old"]);
  await until(depot, "Enforced", "Succeeded");
  // Its replacement does not report; the old report counts while it is retained.
  await startPod("depot-new", of);
  await stopOld();
  const waiting = await until(depot, "Enforced", "Progressing");
  const { message } = await waitFor("the pod to be named alone", async () => {
    const found = conditionOf(await world.status(depot), "Enforced");
    return found?.message.startsWith("0 of the 1") ? found : undefined;
  });
  expect(message).toBe("0 of the 1 running pods with a gate have reported; not depot-new.");
  expect(waiting).toMatchObject({ dataPlane: { pods: 1, updated: 1 } });
  await reportFrom(depot, ["depot-new"]);
  await until(depot, "Enforced", "Succeeded");
}, 90_000);

test.each([
  { name: "of spec.selector", app: "hanging", more: {} },
  { name: "of a policy without a selector, which it names", app: "named", more: { selector: undefined } },
])(
  "policy is not enforced and names a pod $name whose gate hangs",
  async ({ app, more }) => {
    const hanging = policy(app, app);
    const one = { ...hanging, spec: { ...hanging.spec, ...more } };
    await world.apply(one);
    await untilReason(world, one, "Succeeded");
    const of = { app, gate: true, annotations: { "postern.dev/policy": app } };
    await startPod(`${app}-1`, of);
    const stop = await startPod(`${app}-2`, of);
    const startedMs = Date.now();
    await reportFrom(one, [`${app}-1`]);
    const hang = await reportFrom(one, [`${app}-2`]);
    await until(one, "Enforced", "Succeeded");
    // The pod keeps running, while the API discards a report after 15 s.
    hang();
    const status = await waitFor(
      "the pod to be missed",
      async () => {
        const found = await world.status(one);
        return conditionOf(found, "Enforced")?.reason === "PodsSilent" ? found : undefined;
      },
      { deadlineMs: 60_000 },
    );
    const { message = "" } = conditionOf(status, "Enforced") ?? {};
    expect(message).toContain(`The gates of 1 of the 2 running pods no longer report: ${app}-2 (last report at `);
    const atMs = Date.parse(/last report at ([^)]+)/.exec(message)?.[1] ?? "");
    expect(atMs).toBeGreaterThanOrEqual(startedMs);
    expect(atMs).toBeLessThan(Date.now());
    expect(status).toMatchObject({ dataPlane: { pods: 1, silent: 1 } });
    await stop();
    expect(conditionOf(await until(one, "Enforced", "Succeeded"), "Enforced")?.message).toContain("The only gate");
  },
  120_000,
);

test("policy is not enforced after a target.port change until its pods are replaced", async () => {
  const patched = policy("patched", "patched");
  await world.apply(patched);
  await untilReason(world, patched, "Succeeded");
  const of = { app: "patched", gate: true, annotations: { "postern.dev/policy": "patched" } };
  const stop = await startPod("patched-1", of);
  await reportFrom(patched, ["patched-1"], { upstreamPort: 8080 });
  await until(patched, "Enforced", "Succeeded");
  await world.apply({ ...patched, spec: { ...patched.spec, target: { port: 9090 } } });
  const status = await until(patched, "Enforced", "PodsOutdated");
  expect(conditionOf(status, "Enforced")).toMatchObject({ status: "False" });
  expect(conditionOf(status, "Enforced")?.message).toContain("patched-1. Restart these pods.");
  await stop();
  await startPod("patched-2", { ...of, gate: { guards: 9090 } });
  await reportFrom(patched, ["patched-2"], { upstreamPort: 9090 });
  await until(patched, "Enforced", "Succeeded");
}, 90_000);

test("policy without pods in the cluster uses ports reported by gates", async () => {
  const elsewhere = policy("elsewhere", "elsewhere");
  const one = { ...elsewhere, spec: { ...elsewhere.spec, selector: undefined } };
  await world.apply(one);
  await untilReason(world, one, "Succeeded");
  await reportFrom(one, ["of-an-earlier-release"]);
  await until(one, "Enforced", "Succeeded");
  const stop = await reportFrom(one, ["by-hand"], { upstreamPort: 3000 });
  const status = await until(one, "Enforced", "PodsOutdated");
  expect(conditionOf(status, "Enforced")?.message).toContain("1 of 2 gates forward to another port");
  stop();
  await reportFrom(one, ["by-hand"], { upstreamPort: 8080 });
  await until(one, "Enforced", "Succeeded");
}, 90_000);
