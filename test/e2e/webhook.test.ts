import { randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { KubeObject } from "../../operator/runtime/kube-client.ts";
import type { Operator } from "../../operator/start.ts";
import { type CertificateSet, DEFAULT_LIFETIMES, renewed, splitPem } from "../../operator/webhook/certificate-set.ts";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { freePort } from "../harness/ports.ts";
import { waitFor } from "../harness/wait.ts";
import { type AnyPod, gateOf, guardedPod, openWebhookWorld, SECRET, type WebhookWorld } from "./webhook-world.ts";

let world: WebhookWorld;
let operator: Operator;
let shop: string;
beforeAll(async () => {
  world = await openWebhookWorld();
  operator = await world.startOperator();
  shop = await world.namespace();
  await world.policy(shop, "orders");
  await untilInjected(shop);
}, KUBERNETES_START_MS);
afterAll(() => world?.close());

/** A new policy and a new configuration take effect after a moment. */
const untilInjected = (namespace: string, pod: AnyPod = guardedPod()) =>
  waitFor("a guarded pod to be injected", async () => {
    const { pod: created, message } = await world.create(namespace, pod);
    if (gateOf(created) === undefined) throw new Error(message);
    return created;
  });

describe("a guarded pod", () => {
  test("guarded pod gets a gate that Kubernetes stores unchanged and that takes over the port name", async () => {
    const { pod, message } = await world.create(shop, guardedPod(), { dryRun: false });
    expect(message).toBe("");
    const path = `/api/v1/namespaces/${shop}/pods/${pod.metadata.name}`;
    const stored: AnyPod = await world.client.send<KubeObject>({ method: "GET", path });
    expect(stored.spec.initContainers[0]).toMatchObject({
      name: "postern-gate",
      restartPolicy: "Always",
      ports: [{ name: "http", containerPort: 19_080 }, { name: "postern-admin" }],
      envFrom: [{ secretRef: { name: "postern-gate" } }],
    });
    const env = Object.fromEntries(gateOf(stored).env.map(({ name, value }: AnyPod) => [name, value]));
    const { data: workspace } = await world.store.call("workspaces.getWorkspace", {});
    expect(env).toMatchObject({ POSTERN_POLICY: `main/${shop}/orders`, POSTERN_WORKSPACE: workspace.id });
    const [app] = stored.spec.containers;
    expect(app.ports).toEqual([{ containerPort: 8080, protocol: "TCP" }]);
    expect(app.readinessProbe.httpGet).toMatchObject({ path: "/probes/app/readinessProbe", port: 19_081 });
    expect(app.lifecycle.preStop).toEqual({ sleep: { seconds: 5 } });
    expect(stored.metadata.annotations["postern.dev/policy"]).toBe("orders");

    // A pod copied with its gate stays the same.
    const { resourceVersion, uid, creationTimestamp, name, ...metadata } = stored.metadata;
    const copy = await world.create(shop, { ...stored, metadata, status: undefined });
    expect(copy.pod?.spec).toEqual(stored.spec);
    expect(copy.pod?.metadata.annotations).toEqual(stored.metadata.annotations);
  });

  test.each<{ name: string; pod: AnyPod }>([
    { name: "of a Deployment", pod: guardedPod({ metadata: owned("ReplicaSet", "orders-7c9") }) },
    {
      name: "of a StatefulSet",
      pod: guardedPod({
        metadata: { ...owned("StatefulSet", "orders"), generateName: undefined, name: "orders-0" },
        spec: { hostname: "orders-0", subdomain: "orders" },
      }),
    },
    { name: "of a Job", pod: guardedPod({ metadata: owned("Job", "orders"), spec: { restartPolicy: "Never" } }) },
    {
      name: "of a DaemonSet",
      pod: guardedPod({
        metadata: owned("DaemonSet", "orders"),
        spec: { tolerations: [{ key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" }] },
      }),
    },
  ])("guarded pod $name gets a gate", async ({ pod }) => {
    const spec = { ...guardedPod().spec, ...pod.spec };
    const { pod: created, message } = await world.create(shop, { ...pod, spec });
    expect(message).toBe("");
    expect(created.spec.initContainers[0].name).toBe("postern-gate");
  });

  test("namespace label guards its pods, and unlabeled pods are left unchanged", async () => {
    const guarded = await world.namespace({ "postern.dev/guarded": "true" });
    await world.policy(guarded, "orders");
    const plain = guardedPod({ labels: { "postern.dev/guarded": undefined } });
    await untilInjected(guarded, plain);
    const { pod } = await world.create(shop, plain);
    expect(gateOf(pod)).toBeUndefined();
    expect(pod.metadata.annotations).toBeUndefined();
  });

  test("guarded pod without a matching policy is rejected unless it names a policy", async () => {
    const stranger = guardedPod({ labels: { app: "stranger" } });
    expect((await world.create(shop, stranger)).message).toMatch(
      /no ApiKeyPolicy selects this pod.*postern\.dev\/policy/,
    );
    const coming = guardedPod({
      metadata: { annotations: { "postern.dev/policy": "coming" } },
      labels: { app: "stranger" },
    });
    const { pod, message } = await world.create(shop, {
      ...coming,
      metadata: { ...guardedPod().metadata, ...coming.metadata },
    });
    expect(message).toBe("");
    expect(gateOf(pod).env).toContainEqual({ name: "POSTERN_POLICY", value: `main/${shop}/coming` });
  });

  test("guarded pod matched by two policies gets the older one", async () => {
    const two = await world.namespace();
    await world.policy(two, "z-first");
    await untilInjected(two);
    // Creation times have a resolution of one second.
    await sleep(1_100);
    await world.policy(two, "a-second");
    await waitFor("both to be known", async () => {
      const { pod } = await world.create(
        two,
        guardedPod({ metadata: { ...guardedPod().metadata, annotations: { "postern.dev/policy": "a-second" } } }),
      );
      return pod?.metadata.annotations["postern.dev/policy"] === "a-second";
    });
    const { stderr } = await world.cluster.kubectl(
      ["-n", two, "create", "--dry-run=server", "-f", "-"],
      JSON.stringify(guardedPod()),
    );
    expect(stderr).toContain("ApiKeyPolicy a-second also selects this pod; the gate enforces z-first");
  });

  test.each([
    { name: "with hostNetwork", spec: { hostNetwork: true }, says: /hostNetwork/ },
    {
      name: "with a container of our name",
      spec: { initContainers: [{ name: "postern-gate", image: "x" }] },
      says: /was not injected/,
    },
    {
      name: "with a hostPort for the guarded port",
      spec: {
        containers: [
          { ...guardedPod().spec.containers[0], ports: [{ name: "http", containerPort: 8080, hostPort: 8080 }] },
        ],
      },
      says: /hostPort 8080 for the guarded port 8080.*NodePort/,
    },
    {
      name: "whose port name means two ports",
      spec: {
        containers: [
          guardedPod().spec.containers[0],
          { name: "second", image: "x", ports: [{ name: "http", containerPort: 8081 }] },
        ],
      },
      says: /port name http is 8080 and, in the container second, 8081/,
    },
  ])("guarded pod $name is rejected", async ({ spec, says }) => {
    const pod = guardedPod({ spec: { ...guardedPod().spec, ...spec } });
    expect((await world.create(shop, { ...pod, spec: { ...guardedPod().spec, ...spec } })).message).toMatch(says);
  });
});

test.each(["True", "yes"])(
  "injection label value %j of pod or Namespace counts as true with a warning",
  async (value) => {
    const create = async (namespace: string, pod: AnyPod) =>
      await world.cluster.kubectl(
        ["-n", namespace, "create", "--dry-run=server", "-o", "json", "-f", "-"],
        JSON.stringify(pod),
      );
    const own = await create(shop, guardedPod({ labels: { "postern.dev/guarded": value } }));
    expect(own.stderr).toContain(`has the value "${value}", which counts as "true"`);
    expect(gateOf(JSON.parse(own.stdout))).toBeDefined();
    const guarded = await world.namespace({ "postern.dev/guarded": value });
    await world.policy(guarded, "orders");
    await untilInjected(guarded, guardedPod({ labels: { "postern.dev/guarded": undefined } }));
    const free = await world.namespace({ "postern.dev/guarded": "false" });
    const { pod } = await world.create(free, guardedPod({ labels: { "postern.dev/guarded": "false" } }));
    expect(gateOf(pod)).toBeUndefined();
  },
);

test("gate of a pod with pod-level limits stays within them and is admitted", async () => {
  const resources = { requests: { cpu: "100m", memory: "128Mi" }, limits: { cpu: "1", memory: "256Mi" } };
  const pod = guardedPod({ spec: { resources } });
  const { pod: created, message } = await world.create(shop, { ...pod, spec: { ...guardedPod().spec, resources } });
  expect(message).toBe("");
  expect(created.spec.resources).toEqual(resources);
  expect(gateOf(created).resources).toEqual({ requests: { cpu: "0", memory: "0" }, limits: { memory: "256Mi" } });
});

test("quota on CPU limits rejects a gate without one, and a warning names the annotation to set", async () => {
  const limited = await world.namespace();
  await world.policy(limited, "orders");
  await untilInjected(limited);
  const hard = { "limits.cpu": "4" };
  const path = `/api/v1/namespaces/${limited}/resourcequotas`;
  await world.client.send({ method: "POST", path, body: { metadata: { name: "compute" }, spec: { hard } } });
  // Written here in place of the missing controller manager.
  const contentType = "application/merge-patch+json";
  const status = { status: { hard, used: { "limits.cpu": "0" } } };
  await world.client.send({ method: "PATCH", path: `${path}/compute/status`, contentType, body: status });
  const create = async (annotations: object) => {
    const pod = guardedPod({ app: { resources: { limits: { cpu: "1" } } } });
    const given = JSON.stringify({ ...pod, metadata: { ...pod.metadata, annotations } });
    return await world.cluster.kubectl(["-n", limited, "create", "--dry-run=server", "-f", "-"], given);
  };
  const { stderr } = await waitFor("the quota to be in force", async () => {
    const created = await create({});
    return created.exitCode === 0 ? undefined : created;
  });
  expect(stderr).toContain("must specify limits.cpu for: postern-gate");
  expect(stderr).toContain("annotate the pod with postern.dev/gate-cpu-limit");
  expect(await create({ "postern.dev/gate-cpu-limit": "500m" })).toMatchObject({ exitCode: 0, stderr: "" });
});

function owned(kind: string, name: string) {
  const controller = {
    apiVersion: "apps/v1",
    kind,
    name,
    uid: "6f1d4b0e-52c1-4c55-9f0e-0a8c3c1b7a11",
    controller: true,
  };
  return { generateName: `${name}-`, labels: guardedPod().metadata.labels, ownerReferences: [controller] };
}

test("Pod Security `restricted` admits a guarded pod but not Redirect rules", async () => {
  const enforce = { "pod-security.kubernetes.io/enforce": "restricted" };
  const restricted = await world.namespace(enforce);
  await world.policy(restricted, "orders");
  await untilInjected(restricted);
  const redirected = await world.namespace(enforce);
  await world.policy(redirected, "orders", { interception: "Redirect" });
  const { message } = await waitFor("the policy to be known", async () => {
    const created = await world.create(redirected, guardedPod());
    return created.message.includes("no ApiKeyPolicy") ? undefined : created;
  });
  expect(message).toMatch(/violates PodSecurity.*postern-redirect/);
});

test("invalid permission query is rejected on apply with its position", async () => {
  const apply = (permissions: string) =>
    world.policy(shop, `query-${permissions.length}`, { selector: undefined, rules: [{ permissions }] }).catch(String);
  await waitFor("the validating webhook to be called", async () =>
    /rules\[0\]\.permissions/.test(String(await apply("a AND"))),
  );
  expect(await apply("orders.write OR orders.admin")).toBeUndefined();
});

test("gate injected by a Namespace label is covered by status and NetworkPolicy", async () => {
  const guarded = await world.namespace({ "postern.dev/guarded": "true" });
  await world.policy(guarded, "orders");
  const bare = guardedPod();
  delete bare.metadata.labels["postern.dev/guarded"];
  await untilInjected(guarded, bare);
  const { pod } = await world.create(guarded, bare, { dryRun: false });
  const path = `/api/v1/namespaces/${guarded}/pods/${pod.metadata.name}/status`;
  const contentType = "application/merge-patch+json";
  await world.client.send({ method: "PATCH", path, contentType, body: { status: { phase: "Running" } } });

  const policy = `/apis/postern.dev/v1alpha1/namespaces/${guarded}/apikeypolicies/orders`;
  const statusOf = async () => (await world.client.send<AnyPod>({ method: "GET", path: policy })).status;
  const until = (what: string, type: string, holds: (condition: AnyPod) => boolean) =>
    waitFor(
      what,
      async () => (await statusOf())?.conditions?.find((one: AnyPod) => one.type === type && holds(one)) ?? undefined,
      { deadlineMs: 20_000 },
    );
  const closed = await until("the way around to be closed", "Bypassable", ({ status }) => status === "False");
  expect(closed.message).toContain("NetworkPolicy postern-orders");
  const { db, pods } = world.store.server.deps;
  const report = async () => {
    const { policyId, workspaceId } = await statusOf();
    const { rows } = await db.query<{ version: number }>("select version from policies where id = $1", [policyId]);
    const podId = `${guarded}/${pod.metadata.name}`;
    await pods.report({ workspaceId, policyId, podId, generation: 1, version: rows[0]?.version ?? 0, stalenessMs: 1 });
  };
  await report();
  const enforced = await until("the policy to be enforced", "Enforced", ({ status }) => status === "True");
  expect(enforced.message).toBe("The only gate enforces this generation.");

  const labels = { "postern.dev/guarded": null };
  const body = { metadata: { labels } };
  await world.client.send({ method: "PATCH", path: `/api/v1/namespaces/${guarded}`, contentType, body });
  await report();
  await until("the label to be missed", "Enforced", ({ message }) =>
    message.includes("and neither does their Namespace"),
  );
});

test("any pod that Kubernetes admits is also admitted with a gate", async () => {
  const name = fc.constantFrom("http", "web", "grpc-1");
  const number = fc.constantFrom(8080, 8081, 19_080, 19_081, 65_535);
  const handler = fc.oneof(
    fc.record({ httpGet: fc.record({ port: fc.oneof(number, name), path: fc.constantFrom("/", "/a?b=$(C)") }) }),
    fc.record({ tcpSocket: fc.record({ port: number }) }),
    fc.record({ grpc: fc.record({ port: number, service: fc.constantFrom("", "a.B") }) }),
    fc.constant({ exec: { command: ["true"] } }),
  );
  const container = fc.record(
    {
      image: fc.constant("x"),
      ports: fc.uniqueArray(fc.record({ containerPort: number, name }), { maxLength: 3, selector: (one) => one.name }),
      readinessProbe: handler,
      livenessProbe: fc
        .tuple(handler, fc.integer({ min: 1, max: 9 }))
        .map(([one, timeoutSeconds]) => ({ ...one, timeoutSeconds })),
      lifecycle: fc.record({ preStop: handler.filter((one) => !("grpc" in one)) }),
      resources: fc.constantFrom({}, { limits: { cpu: "1" } }),
    },
    { requiredKeys: ["image"] },
  );
  const native = container.map((one) => ({ ...one, restartPolicy: "Always" }));
  const setup = container.map(({ image }) => ({ image }));
  const pods = fc.record(
    {
      containers: fc.array(container, { minLength: 1, maxLength: 3 }),
      initContainers: fc.array(fc.oneof(native, setup), { maxLength: 2 }),
      terminationGracePeriodSeconds: fc.constantFrom(0, 1, 5, 30),
      restartPolicy: fc.constantFrom("Always", "Never"),
      volumes: fc.constantFrom([], [{ name: "data", emptyDir: {} }]),
      shareProcessNamespace: fc.boolean(),
    },
    { requiredKeys: ["containers"] },
  );
  const named = (prefix: string, all: readonly object[] = []) =>
    all.map((one, i) => ({ name: `${prefix}-${i}`, ...one }));
  const counts = { admitted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(pods, fc.constantFrom("http", 8080), async (given, port) => {
      const spec = {
        ...given,
        serviceAccountName: "default",
        containers: named("app", given.containers),
        initContainers: named("init", given.initContainers),
      };
      const annotations = { "postern.dev/policy": "orders-to-come", "postern.dev/target-port": String(port) };
      const metadata = { generateName: "any-", annotations };
      if ((await world.create(shop, { metadata, spec })).pod === undefined) return;
      const labels = { "postern.dev/guarded": "true" };
      const { pod, message } = await world.create(shop, { metadata: { ...metadata, labels }, spec });
      // A policy may name a port that the pod lacks or that has two numbers; that is reported and is no error of the patch.
      if (pod === undefined) {
        expect(message).toMatch(/no container of the pod has a TCP port of this name|is \d+ and, in the container/);
      }
      counts[pod === undefined ? "refused" : "admitted"] += 1;
      if (pod === undefined) return;
      expect(pod.spec.initContainers[0].name).toBe("postern-gate");
      expect(pod.spec.containers).toHaveLength(spec.containers.length);
    }),
    { numRuns: 60 },
  );
  expect(counts.admitted).toBeGreaterThan(20);
}, 120_000);

test("only guarded pods are rejected during an operator outage, and the webhook CA survives it", async () => {
  const before = await secret();
  await operator.close();
  const { message } = await world.create(shop, guardedPod());
  expect(message).toContain("failed calling webhook");
  expect(await world.create(shop, guardedPod({ labels: { "postern.dev/guarded": "false" } }))).toMatchObject({
    message: "",
  });
  expect(await world.create("kube-system", guardedPod())).toMatchObject({ message: "" });
  operator = await world.startOperator();
  await untilInjected(shop);
  expect(await secret()).toEqual(before);
});

test("metrics report the expiry of the served webhook certificate", async () => {
  const metrics = await (await fetch(`${operator.adminUrl}/metrics`)).text();
  const said = /^postern_operator_webhook_certificate_expiry_timestamp_seconds (\S+)$/m.exec(metrics)?.[1];
  const { "tls.crt": cert = "" } = await secret();
  const served = new X509Certificate(Buffer.from(cert, "base64"));
  expect(Number(said) * 1000).toBe(served.validToDate.getTime());
});

describe("a webhook configuration", () => {
  const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/postern";
  const present = async () =>
    /^postern_operator_webhook_configuration_present\{configuration="mutating"\} (\d)$/m.exec(
      await (await fetch(`${operator.adminUrl}/metrics`)).text(),
    )?.[1];

  test("removed caBundle of the webhook configuration is restored immediately", async () => {
    const before = await bundle();
    for (let round = 0; round < 3; round++) {
      const found: AnyPod = await world.client.send<KubeObject>({ method: "GET", path });
      for (const webhook of found.webhooks) delete webhook.clientConfig.caBundle;
      await world.client.send({ method: "PUT", path, body: found });
      // The periodic check runs once a minute.
      await waitFor("the authority to be back", async () => (await bundle()) === before, { deadlineMs: 3_000 });
    }
  });

  test("deleted webhook configuration is reported and recreated", async () => {
    await operator.close();
    operator = await world.startOperator({ restoreMs: 2_000 });
    await untilInjected(shop);
    expect(await present()).toBe("1");
    const before: AnyPod = await world.client.send<KubeObject>({ method: "GET", path });
    await world.client.send({ method: "DELETE", path });
    await waitFor("the metric", async () => (await present()) === "0", { deadlineMs: 1_500, everyMs: 20 });
    const { items } = await waitFor("the Event", async () => {
      const found = await world.client.send<{ items: AnyPod[] }>({
        method: "GET",
        path: "/apis/events.k8s.io/v1/namespaces/default/events",
      });
      return found.items.some(({ reason }) => reason === "WebhookConfigurationMissing") ? found : undefined;
    });
    expect(items.find(({ reason }) => reason === "WebhookConfigurationMissing")).toMatchObject({
      type: "Warning",
      regarding: { kind: "MutatingWebhookConfiguration", name: "postern" },
      note: expect.stringContaining("pods with the label start without a gate"),
    });
    await untilInjected(shop);
    const after: AnyPod = await world.client.send<KubeObject>({ method: "GET", path });
    expect(after.webhooks).toEqual(before.webhooks);
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    await waitFor("the metric", async () => (await present()) === "1");
  });

  test("webhook configuration deleted during operator shutdown stays deleted", async () => {
    await operator.close();
    operator = await world.startOperator({ restoreMs: 2_000 });
    const before: AnyPod = await world.client.send<KubeObject>({ method: "GET", path });
    await waitFor("it to be seen", async () => (await present()) === "1");
    await world.client.send({ method: "DELETE", path });
    await waitFor("the metric", async () => (await present()) === "0", { deadlineMs: 1_500, everyMs: 20 });
    await operator.close();
    await expect(world.client.send({ method: "GET", path })).rejects.toMatchObject({ status: 404 });
    const { resourceVersion: _, uid: __, creationTimestamp: ___, ...metadata } = before.metadata;
    await world.client.send({
      method: "POST",
      path: path.slice(0, path.lastIndexOf("/")),
      body: { ...before, metadata },
    });
    operator = await world.startOperator();
    await untilInjected(shop);
  });
});

test("two operator replicas share one webhook CA even if created concurrently", async () => {
  await operator.close();
  await world.client.send({ method: "DELETE", path: `/api/v1/namespaces/default/secrets/${SECRET}` });
  const [one, other] = await Promise.all([world.startOperator(), world.startOperator({ port: await freePort() })]);
  operator = one;
  await untilInjected(shop);
  const [authority] = splitPem(Buffer.from((await secret())["ca.crt"] ?? "", "base64").toString());
  expect(new X509Certificate(authority ?? "").ca).toBe(true);
  await other.close();
});

test("webhook certificate and CA rotation under traffic rejects no pod", async () => {
  await operator.close();
  await world.client.send({ method: "DELETE", path: `/api/v1/namespaces/default/secrets/${SECRET}` });
  operator = await world.startOperator({ lifetimes: { authorityMs: 24_000, servingMs: 9_000 } });
  await untilInjected(shop);
  const served = new Set<string>();
  const authorities = new Set<string>();
  const failures: string[] = [];
  let calls = 0;
  const until = Date.now() + 40_000;
  let trusted: readonly string[] = [];
  // Until the first CA has expired and is no longer trusted.
  const isRotated = () =>
    served.size >= 4 && authorities.size >= 2 && calls > 50 && !trusted.includes([...authorities][0] ?? "");
  while (Date.now() < until && !isRotated()) {
    const { pod, message } = await world.create(shop, guardedPod());
    calls += 1;
    if (gateOf(pod) === undefined) failures.push(message);
    const data = await secret();
    served.add(data["tls.crt"] ?? "");
    trusted = splitPem(Buffer.from(data["ca.crt"] ?? "", "base64").toString());
    authorities.add(trusted[0] ?? "");
    // The API server keeps its connections; a new one trusts only the configured CA.
    await shake(await bundle()).catch((error: unknown) => failures.push(String(error)));
    await sleep(100);
  }
  expect(failures).toEqual([]);
  expect({ served: served.size, authorities: authorities.size, calls, isRotated: isRotated() }).toMatchObject({
    isRotated: true,
  });
}, 90_000);

test("externally issued webhook certificates are reloaded, and mismatched pairs are ignored", async () => {
  await operator.close();
  const wanted = { hosts: ["127.0.0.1"], lifetimes: DEFAULT_LIFETIMES, nowMs: Date.now() };
  const [first, second, third] = [1, 2, 3].map(() => renewed(undefined, wanted));
  if (first === undefined || second === undefined || third === undefined) throw new Error("no certificates");
  await trust([first, second, third].map(({ bundle: one }) => one).join(""));
  const dir = await mkdtemp(join(tmpdir(), "postern-webhook-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  await mount(dir, first);
  operator = await world.startOperator({ certDir: dir });
  await untilInjected(shop);

  const failures: string[] = [];
  let calls = 0;
  let isOver = false;
  const traffic = Array.from({ length: 3 }, async () => {
    while (!isOver) {
      const { pod, message } = await world.create(shop, guardedPod());
      calls += 1;
      if (gateOf(pod) === undefined) failures.push(message);
    }
  });
  const untilServed = ({ cert }: CertificateSet) =>
    waitFor(
      "the files to be served",
      async () => (await servedFingerprint()) === new X509Certificate(cert).fingerprint256,
    );
  await mount(dir, second);
  await untilServed(second);
  // The key belongs to another certificate, as when files are copied separately.
  await mount(dir, { ...third, key: second.key });
  await waitFor("calls in the meantime", () => calls > 20);
  expect(await servedFingerprint()).toBe(new X509Certificate(second.cert).fingerprint256);
  await mount(dir, third);
  await untilServed(third);
  isOver = true;
  await Promise.all(traffic);
  expect(failures).toEqual([]);
}, 90_000);

/** Mounts a Secret as kubelet does: all files change together by a symbolic link. */
async function mount(dir: string, { cert, key }: { cert: string; key: string }): Promise<void> {
  const version = `..${randomBytes(4).toString("hex")}`;
  await mkdir(join(dir, version));
  await Promise.all([writeFile(join(dir, version, "tls.crt"), cert), writeFile(join(dir, version, "tls.key"), key)]);
  await symlink(version, join(dir, "..data_tmp"));
  await rename(join(dir, "..data_tmp"), join(dir, "..data"));
  for (const name of ["tls.crt", "tls.key"]) await symlink(`..data/${name}`, join(dir, name)).catch(() => undefined);
}

/** Makes the API server trust these CAs, as the installer of such a certificate does. */
async function trust(authorities: string): Promise<void> {
  const caBundle = Buffer.from(authorities).toString("base64");
  for (const kind of ["mutating", "validating"]) {
    const path = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations/postern`;
    const found: AnyPod = await world.client.send<KubeObject>({ method: "GET", path });
    for (const webhook of found.webhooks) webhook.clientConfig.caBundle = caBundle;
    await world.client.send({ method: "PUT", path, body: found });
  }
}

async function servedFingerprint(): Promise<string> {
  const socket = connect({ port: world.port, host: "127.0.0.1", ca: await bundle() });
  try {
    await once(socket, "secureConnect");
    return socket.getPeerCertificate().fingerprint256;
  } finally {
    socket.destroy();
  }
}

/** Returns the caBundle stored in the API server. */
async function bundle(): Promise<string> {
  const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/postern";
  const { webhooks } = await world.client.send<{ webhooks: { clientConfig: { caBundle: string } }[] }>({
    method: "GET",
    path,
  });
  return Buffer.from(webhooks[0]?.clientConfig.caBundle ?? "", "base64").toString();
}

async function shake(ca: string): Promise<void> {
  const socket = connect({ port: world.port, host: "127.0.0.1", ca });
  try {
    await once(socket, "secureConnect");
  } finally {
    socket.destroy();
  }
}

async function secret(): Promise<Record<string, string>> {
  const path = `/api/v1/namespaces/default/secrets/${SECRET}`;
  const { data } = await world.client.send<{ data: Record<string, string> }>({ method: "GET", path });
  return data;
}
