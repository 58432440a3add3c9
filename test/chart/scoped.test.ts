import { pino } from "pino";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import {
  applyCrds,
  conditionOf,
  openStore,
  operatorOf,
  resourceOf,
  type Status,
  type Store,
  type TestManifest,
  toJson,
} from "../e2e/operator-world.ts";
import { kubeconfigWith } from "../harness/kubeconfig.ts";
import { KUBERNETES_START_MS, startOwnKubernetes } from "../harness/kubernetes.ts";
import { findHelm } from "../harness/parts/helm.ts";
import { freePort } from "../harness/ports.ts";
import { waitFor } from "../harness/wait.ts";
import { render } from "./render.ts";

/* Permissions of the chart without ClusterRoles on a real API server: they suffice for an operator of two namespaces. */

const OWN = "postern";
const SCOPED = ["shop", "lab"];
const ELSEWHERE = "elsewhere";

let kubernetes: Awaited<ReturnType<typeof startOwnKubernetes>>;
let store: Store;
beforeAll(async () => {
  await findHelm();
  kubernetes = await startOwnKubernetes();
  await applyCrds(kubernetes);
  for (const name of [OWN, ...SCOPED, ELSEWHERE]) await kubectl(["create", "namespace", name]);
  store = await openStore();
}, KUBERNETES_START_MS);
afterAll(async () => {
  await store?.close();
  await kubernetes?.stop();
});

async function kubectl(args: string[], stdin?: string): Promise<string> {
  const { exitCode, stdout, stderr } = await kubernetes.kubectl(args, stdin);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout;
}

/** Returns a kubeconfig that impersonates the ServiceAccount of the operator. */
const kubeconfig = (): Promise<string> =>
  kubeconfigWith(kubernetes, { user: { as: `system:serviceaccount:${OWN}:postern-operator` }, namespace: OWN });

test("operator limited to two namespaces needs no cluster-wide permission and reaches no other namespace", async () => {
  const values = {
    operator: { clusterName: "test" },
    database: { existingSecret: "db" },
    redis: { existingSecret: "redis" },
    scopedNamespaces: SCOPED,
    apiKeyNamespaces: ["shop"],
  };
  const rights = (await render(values, OWN))
    .filter(({ kind }) => /^(Cluster)?Role(Binding)?$|^ServiceAccount$/.test(kind))
    .map((object) => ({ ...object, metadata: { namespace: OWN, ...object.metadata } }));
  expect(rights.length).toBeGreaterThan(8);
  await kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: rights }));

  const of = (kind: string, namespace: string, spec: Record<string, unknown>): TestManifest => ({
    kind,
    metadata: { name: `${namespace}-it`, namespace },
    spec,
  });
  const policy = (namespace: string) =>
    of("ApiKeyPolicy", namespace, { api: { name: namespace }, target: { port: 8080 }, networkPolicy: "None" });
  const mine = [
    ...SCOPED.map(policy),
    of("Role", "lab", { name: "lab", permissions: ["a.read"] }),
    of("ApiKey", "shop", { policyRef: { name: "shop-it" }, secretRef: { name: "the-key" } }),
  ];
  const foreign = policy(ELSEWHERE);
  for (const one of [...mine, foreign]) await kubectl(["apply", "-f", "-"], toJson(one));

  const port = await freePort();
  const operator = await operatorOf(
    store,
    { kind: "kubernetes", kubeconfig: await kubeconfig(), namespaces: SCOPED },
    {
      logger: pino({ level: "silent" }),
      lease: { name: "postern-operator" },
      admin: { host: "127.0.0.1", port },
    },
  );
  onTestFinished(() => operator.close());
  const readyOf = async ({ kind, metadata: { namespace, name } }: TestManifest) => {
    const text = await kubectl(["-n", namespace, "get", resourceOf(kind), name, "-o", "json"]);
    return conditionOf((JSON.parse(text) as { status?: Status }).status, "Ready")?.reason;
  };
  const ready = () => Promise.all(mine.map(readyOf));
  await waitFor("all of its objects to be Ready", async () => (await ready()).every((one) => one === "Succeeded"), {
    deadlineMs: 60_000,
  });
  expect(await kubectl(["-n", "shop", "get", "secret", "the-key", "-o", "name"])).toBe("secret/the-key\n");
  expect(await readyOf(foreign)).toBe("Pending");

  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const refused = metrics.match(/^postern_operator_kubernetes_requests_total.*code="403".*$/gm) ?? [];
  expect(refused).toEqual([]);
  // Other actions are denied.
  for (const right of ["get secrets -n lab", `list apikeypolicies.postern.dev -n ${ELSEWHERE}`, "list pods -A"]) {
    const { stdout } = await kubernetes.kubectl([
      ...["auth", "can-i", ...right.split(" ")],
      ...["--as", `system:serviceaccount:${OWN}:postern-operator`],
    ]);
    expect(stdout.trim(), right).toBe("no");
  }
}, 120_000);
