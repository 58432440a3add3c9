import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { type Operator, startOperator } from "../../operator/start.ts";
import { aConfig } from "../../operator/test/pods.ts";
import { webhookConfigurations } from "../../operator/webhook/configurations.ts";
import { kubeconfigWith } from "../harness/kubeconfig.ts";
import { KUBERNETES_START_MS, startOwnKubernetes } from "../harness/kubernetes.ts";
import { freePort } from "../harness/ports.ts";
import { waitFor } from "../harness/wait.ts";
import { applyCrds, conditionOf, openManifests, openStore, operatorOf, type Store } from "./operator-world.ts";

/*
 * Compares the RBAC rules of the chart (charts/postern/files/operator-rules.yaml) with a real API server: they suffice, each is used, and a
 * missing permission is reported by name in readiness or the log.
 */

const RULES = join(import.meta.dirname, "../../charts/postern/files/operator-rules.yaml");
/** Namespaces of the operator and of the manifests. */
const OWN = "postern-system";
const SHOP = "shop";
const NETWORK_POLICIES = `/apis/networking.k8s.io/v1/namespaces/${SHOP}/networkpolicies`;

const SECTIONS = ["own", "ownWebhook", "manifests", "cluster", "webhook", "namespaces"] as const;
type Section = (typeof SECTIONS)[number];
interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}
interface Right {
  readonly section: Section;
  readonly group: string;
  readonly resource: string;
  /** Name of the only object; default: all. */
  readonly name?: string | undefined;
  readonly verb: string;
}

const sections = parse(await readFile(RULES, "utf8")) as Record<Section, readonly Rule[]>;
const listed: Right[] = SECTIONS.flatMap((section) =>
  sections[section].flatMap(({ apiGroups, resources, resourceNames: [name] = [], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) => verbs.map((verb) => ({ section, group, resource, name, verb }))),
    ),
  ),
);
const textOf = ({ group, resource, name, verb }: Right): string => JSON.stringify([group, resource, name, verb]);
/** A permission listed in two sections is one permission here, because the operator needs both. */
const rights = listed.filter((right, i) => listed.findIndex((one) => textOf(one) === textOf(right)) === i);

/** Whether the permission applies in the operator's namespace. */
const isOwn = ({ section }: Right): boolean => section === "own" || section === "ownWebhook";
const labelOf = ({ group, resource, verb }: Right): string => `${verb} ${resource}.${group}`;

/** Names in the rules in place of release names. */
const WEBHOOK = {
  host: "127.0.0.1",
  port: 0,
  hosts: ["webhook.test"],
  configurationName: "webhook-configuration",
  certificate: { secretName: "webhook-secret" },
  injection: aConfig(),
};

let kubernetes: Awaited<ReturnType<typeof startOwnKubernetes>>;
let manifests: Awaited<ReturnType<typeof openManifests>>;
let store: Store;
beforeAll(async () => {
  kubernetes = await startOwnKubernetes();
  await applyCrds(kubernetes);
  manifests = await openManifests(kubernetes);
  for (const name of [OWN, SHOP]) await kubectl(["create", "namespace", name]);
  // Created by the chart. Nothing is guarded here, so the API server never calls it.
  const client = (path: string) => ({ service: { name: "webhook", namespace: OWN, path } });
  for (const one of webhookConfigurations({ name: WEBHOOK.configurationName, ownNamespace: OWN, client })) {
    await kubectl(["apply", "-f", "-"], JSON.stringify(one));
  }
  await kubectl(["-n", OWN, "create", "secret", "generic", WEBHOOK.certificate.secretName]);
  store = await openStore();
}, KUBERNETES_START_MS);
afterAll(async () => {
  await store?.close();
  await manifests?.close();
  await kubernetes?.stop();
});

async function kubectl(args: string[], stdin?: string): Promise<string> {
  const { exitCode, stdout, stderr } = await kubernetes.kubectl(args, stdin);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout;
}

/** Grants the user exactly `granted`. */
async function grant(user: string, granted: readonly Right[]): Promise<void> {
  const ruleOf = ({ group, resource, name, verb }: Right) => ({
    apiGroups: [group],
    resources: [resource],
    ...(name === undefined ? {} : { resourceNames: [name] }),
    verbs: [verb],
  });
  const own = granted.filter(isOwn);
  const wide = granted.filter((right) => !isOwn(right));
  const apiGroup = "rbac.authorization.k8s.io";
  const apply = (kind: string, namespace: string | undefined, members: object) =>
    manifests.client.send({
      method: "PATCH",
      path: `/apis/${apiGroup}/v1${namespace === undefined ? "" : `/namespaces/${namespace}`}/${kind.toLowerCase()}s/${user}`,
      query: { fieldManager: "test", force: "true" },
      contentType: "application/apply-patch+yaml",
      body: { apiVersion: `${apiGroup}/v1`, kind, metadata: { name: user }, ...members },
    });
  const binding = (kind: string) => ({
    subjects: [{ kind: "User", apiGroup, name: user }],
    roleRef: { apiGroup, kind, name: user },
  });
  await apply("Role", OWN, { rules: own.map(ruleOf) });
  await apply("RoleBinding", OWN, binding("Role"));
  await apply("ClusterRole", undefined, { rules: wide.map(ruleOf) });
  await apply("ClusterRoleBinding", undefined, binding("ClusterRole"));
  // The API server applies rules with a delay, and a denial in between would look like a missing permission.
  for (const [right, namespace] of [
    [own.at(-1), OWN],
    [wide.at(-1), SHOP],
  ] as const) {
    if (right === undefined) continue;
    const [resource, subresource] = right.resource.split("/");
    const { group, name, verb } = right;
    const resourceAttributes = { namespace, group, resource, subresource, name, verb };
    await waitFor(`${labelOf(right)} to be granted`, async () => {
      const { status } = await manifests.client.send<{ status: { allowed: boolean } }>({
        method: "POST",
        path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        body: { spec: { user, resourceAttributes } },
      });
      return status.allowed;
    });
  }
}

/** Returns a kubeconfig that impersonates the user in the operator's namespace. */
const kubeconfigOf = (user: string): Promise<string> =>
  kubeconfigWith(kubernetes, { user: { as: user }, namespace: OWN });

/** Returns a folder with the root key of the only workspace, so that the operator uses Namespace labels. */
async function rootKeysDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "postern-rights-keys-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  await writeFile(join(dir, "default"), store.rootKey);
  return dir;
}

/** Deletes the certificate, so that the next operator creates one and writes its CA. */
async function forgetCertificate(): Promise<void> {
  await manifests.client.send({
    method: "PATCH",
    path: `/api/v1/namespaces/${OWN}/secrets/${WEBHOOK.certificate.secretName}`,
    contentType: "application/merge-patch+json",
    body: { data: null },
  });
}

/** Starts an operator without waiting for its lists, which may never complete. */
async function startAs(user: string) {
  await forgetCertificate();
  const lines: string[] = [];
  const port = await freePort();
  const logger = pino({ level: "info" }, { write: (line) => void lines.push(line) });
  const starting = operatorOf(
    store,
    { kind: "kubernetes", kubeconfig: await kubeconfigOf(user) },
    {
      logger,
      lease: { name: user },
      admin: { host: "127.0.0.1", port },
      keys: { rootKeysDir: await rootKeysDir() },
      defaultWorkspace: "default",
      webhook: WEBHOOK,
    },
  );
  let operator: Operator | undefined;
  starting.then(
    (started) => {
      operator = started;
    },
    () => undefined,
  );
  const get = async (path: string) => await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  return {
    starting,
    get,
    isReady: async () => operator !== undefined && (await get("/readyz")) === "ok\n",
    // An API server with a new kind answers the first watches with 429, which are retried.
    warnings: () =>
      lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 40 && !/TooManyRequests/.test(line)),
  };
}

/** Creates a policy without a NetworkPolicy beside an earlier one, which the operator must delete. */
async function leaveNetworkPolicy(name: string) {
  const metadata = { name, namespace: SHOP };
  const none = {
    api: { name },
    target: { port: 8080 },
    selector: { matchLabels: { app: name } },
    networkPolicy: "None",
  };
  const policy = { kind: "ApiKeyPolicy", metadata, spec: none };
  const { uid } = (await manifests.apply(policy)).metadata;
  const { kind } = policy;
  const owner = { apiVersion: "postern.dev/v1alpha1", kind, name, uid, controller: true };
  const left = {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: `postern-${name}`, namespace: SHOP, ownerReferences: [owner] },
    spec: { podSelector: { matchLabels: { app: name } } },
  };
  await manifests.client.send({ method: "POST", path: NETWORK_POLICIES, body: left });
  return policy;
}

/** Creates one object of each kind with unique names. */
async function applyOneOfEach(): Promise<{ isReady(): Promise<boolean>; remove(): Promise<void> }> {
  const name = `x${randomBytes(4).toString("hex")}`;
  const of = (kind: string, spec: Record<string, unknown>) => ({ kind, metadata: { name, namespace: SHOP }, spec });
  const all = [
    of("Role", { name, permissions: ["a.read"] }),
    of("RatelimitNamespace", { name }),
    of("RatelimitOverride", { namespaceRef: { name }, identifier: "acme", limit: 1, duration: "60s" }),
    of("ApiKeyPolicy", { selector: { matchLabels: { app: name } }, api: { name }, target: { port: 8080 } }),
  ];
  for (const one of all) await manifests.apply(one);
  const left = await leaveNetworkPolicy(`${name}-none`);
  all.push(left);
  return {
    isReady: async () => {
      const statuses = await Promise.all(all.map(manifests.status));
      return statuses.every((status) => conditionOf(status, "Ready")?.status === "True");
    },
    // Removes finalizers directly, because the operator may lack permission.
    remove: async () => {
      for (const one of all) {
        // A delete does not wait for an operator then.
        await manifests.patch(one, { metadata: { finalizers: null } });
        await manifests.remove(one);
      }
      await manifests.client.send({ method: "DELETE", path: NETWORK_POLICIES });
    },
  };
}

const SLOW = { deadlineMs: 45_000, everyMs: 100 };

test("chart RBAC rules suffice for the operator", async () => {
  await grant("whole", rights);
  const running = await startAs("whole");
  const operator = await running.starting;
  const objects = await applyOneOfEach();
  try {
    await waitFor("all objects to be Ready", objects.isReady, SLOW);
    await waitFor("the leader", async () => /^postern_operator_leading 1$/m.test(await running.get("/metrics")), SLOW);
    expect(await running.isReady()).toBe(true);
    const requests = (await running.get("/metrics")).match(/^postern_operator_kubernetes_requests_total.*$/gm) ?? [];
    expect(requests.filter((line) => line.includes('code="403"'))).toEqual([]);
    expect(requests.some((line) => line.includes('resource="roles/status",code="200"'))).toBe(true);
    expect(running.warnings()).toEqual([]);
  } finally {
    await operator.close();
    await objects.remove();
  }
}, 180_000);

/** All kinds share code, so a short run drops the permissions of one kind. `npm run test:rbac` drops each. */
const dropped = rights.filter(
  ({ group, resource }) => process.env.ALL_RIGHTS === "1" || group !== "postern.dev" || resource.startsWith("roles"),
);

test.each(dropped.map((right) => ({ name: labelOf(right), right })))(
  "operator without permission to $name reports it and recovers once granted",
  async ({ right }) => {
    const user = `without-${rights.indexOf(right)}`;
    await grant(
      user,
      rights.filter((one) => one !== right),
    );
    const running = await startAs(user);
    const objects = await applyOneOfEach();
    try {
      const missing = `cannot ${right.verb} resource "${right.resource}"`;
      // Without its reads or its election it does nothing and must be unready.
      const where = () =>
        ["list", "watch"].includes(right.verb) || isOwn(right) || right.section === "webhook"
          ? running.get("/readyz")
          : running.warnings().join("\n").replaceAll('\\"', '"');
      await waitFor(`${missing} to be said`, async () => (await where()).includes(missing), SLOW);
      await grant(user, rights);
      await waitFor("the operator to be ready", running.isReady, SLOW);
      await waitFor("all objects to be Ready", objects.isReady, SLOW);
    } finally {
      await grant(user, rights);
      await (await running.starting).close();
      await objects.remove();
    }
  },
  180_000,
);

test("missing permission to record Events is logged once", async () => {
  const user = "without-events";
  await grant(
    user,
    rights.filter(({ resource }) => resource !== "events"),
  );
  const running = await startAs(user);
  const operator = await running.starting;
  const objects = await applyOneOfEach();
  try {
    await waitFor("all objects to be Ready", objects.isReady, SLOW);
    const refused = /^postern_operator_kubernetes_requests_total\{method="POST",resource="events",code="403"\} (\d+)$/m;
    const count = async () => Number(refused.exec(await running.get("/metrics"))?.[1]);
    await waitFor("several refused Events", async () => (await count()) >= 4, SLOW);
    expect(running.warnings()).toHaveLength(1);
    expect(running.warnings()[0]).toContain("events");
    expect(await running.isReady()).toBe(true);
  } finally {
    await operator.close();
    await objects.remove();
  }
}, 180_000);

test("cluster name defaults to the kube-system UID and is empty without permission to read it", async () => {
  const uid = await kubectl(["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"]);
  const naming: Right = { section: "cluster", group: "", resource: "namespaces", verb: "get" };
  await grant("named", [...rights, naming]);
  const kubeconfig = await kubeconfigOf("named");
  const config = {
    source: { kind: "kubernetes", kubeconfig } as const,
    apiUrl: store.server.url,
    keys: { rootKey: () => store.rootKey },
    logger: pino({ level: "silent" }),
  };
  const operator = await startOperator(config);
  expect(operator.cluster).toBe(uid);
  await operator.close();

  await grant(
    "nameless",
    rights.filter(({ resource }) => resource !== "namespaces"),
  );
  const other = { ...config, source: { kind: "kubernetes", kubeconfig: await kubeconfigOf("nameless") } as const };
  await expect(startOperator(other)).rejects.toThrow("set --cluster");
});

test("Lease has the configured name and namespace", async () => {
  const operator = await operatorOf(
    store,
    { kind: "kubernetes", kubeconfig: kubernetes.kubeconfigPath, namespaces: [SHOP] },
    { lease: { name: "ours", namespace: OWN } },
  );
  await waitFor("the Lease", async () => (await kubectl(["-n", OWN, "get", "lease", "ours", "-o", "name"])) !== "");
  await operator.close();
});
