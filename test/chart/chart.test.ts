import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseRolesFile } from "../../api-server/sign-in/roles-file.ts";
import { sidecar } from "../../cli/commands/sidecar.ts";
import { webhookConfigurations } from "../../operator/webhook/configurations.ts";
import { leavesOf } from "../../scripts/generate/chart/describe-values.ts";
import { Values } from "../../scripts/generate/chart/values.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
  type TestNamespace,
} from "../harness/kubernetes.ts";
import { findForeignCrds } from "../harness/parts/foreign-crds.ts";
import { findHelm } from "../harness/parts/helm.ts";
import { lint, type Rendered, render } from "./render.ts";

const TEMPLATES = resolve(import.meta.dirname, "../../charts/postern/templates");
const HELM_BUILD_MS = 1_200_000;

const operator = { clusterName: "c" };
const database = { existingSecret: "db" };
const redis = { existingSecret: "redis" };
/** Gates use the Redis whose URL is in a Secret. */
const injection = { redisUrl: "rediss://redis.example:6379" };
const stores = { database, redis, injection };
const extAuth = {
  enabled: true,
  workspace: "ws_1",
  policy: "shop/orders",
  existingSecret: "gate",
  trustedGateways: ["10.0.0.0/8", "fd00::/8"],
};
/** Values of possible installations by their distinguishing feature. */
const MATRIX: Readonly<Record<string, object>> = {
  "a throw-away pair": { dev: { enabled: true }, operator },
  "addresses in Secrets": { operator, ...stores },
  "addresses by value": {
    operator,
    database: { url: "postgres://u:p@h/d", migration: { url: "postgres://owner:p@h/d" } },
    redis: { url: "rediss://h:6379" },
    eventsRedis: { url: "redis://events:6379" },
    analytics: { url: "https://u:p@ch:8443/postern" },
  },
  "everything optional": {
    operator: {
      ...operator,
      podAnnotations: { a: "b" },
      nodeSelector: { disk: "ssd" },
      extraEnv: [{ name: "A", value: "b" }],
    },
    apiServer: {
      autoscaling: { enabled: true },
      encryptionKeys: { existingSecret: "keys" },
      tolerations: [{ key: "k", operator: "Exists" }],
      affinity: { podAntiAffinity: {} },
      priorityClassName: "system-cluster-critical",
      extraArgs: ["--api-v1=off"],
      tls: { existingSecret: "api-tls" },
      dashboard: {
        url: "https://postern.example.com",
        oidc: { issuer: "https://id.example.com/", clientId: "postern", existingSecret: "oidc" },
        groupRoles: { "platform team": { "*": "admin" }, payments: { shop: "viewer" } },
      },
    },
    database: { ...database, migration: { existingSecret: "db-owner", existingSecretKey: "address" } },
    redis,
    eventsRedis: { existingSecret: "events" },
    injection: {
      ...injection,
      eventsRedisUrl: "redis://events.example:6379",
      gateResources: { requests: { cpu: "20m", memory: "64Mi" }, limits: { cpu: 1, memory: "128Mi" } },
    },
    analytics: { existingSecret: "clickhouse" },
    region: "eu",
    docsUrl: "https://docs.example/postern",
    commonLabels: { team: "platform" },
    image: { registry: "registry.example/postern", tag: "1.2.3", pullSecrets: [{ name: "pull" }] },
    networkPolicy: { enabled: true },
    monitoring: {
      serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
      podMonitor: { enabled: true, labels: { release: "prometheus" } },
      prometheusRule: { enabled: true },
      dashboards: { enabled: true },
    },
    apiKeyNamespaces: ["default", "kube-public"],
    runAsUser: null,
  },
  "an authority of one's own": {
    operator,
    database,
    redis,
    apiServer: { tls: { existingSecret: "api-tls", caKey: "ca.crt" } },
    injection: { existingSecret: "gate", certManager: { enabled: true } },
  },
  "an issuer of the cluster": {
    operator,
    ...stores,
    injection: { ...injection, certManager: { enabled: true, issuerRef: { kind: "ClusterIssuer", name: "internal" } } },
  },
  "a class of operator": { operator, ...stores, controllerClass: "blue" },
  "an operator beside those of classes": { operator, ...stores, otherControllerClasses: ["blue", "green"] },
  "one replica": { operator: { ...operator, replicas: 1 }, apiServer: { replicas: 1 }, ...stores },
  "several workspaces": {
    operator: { ...operator, rootKeys: { existingSecret: "keys", defaultWorkspace: "d" }, tenancy: { workspaces: [] } },
    ...stores,
  },
  "no injection": { operator, database, redis, injection: { enabled: false } },
  "gates with a Secret": {
    operator,
    database,
    redis,
    injection: { existingSecret: "gate", redirectImage: { tag: "of-iptables" } },
  },
  "two namespaces": { operator, database, redis, scopedNamespaces: ["default", "kube-system"] },
  "nothing of the cluster": { operator, ...stores, crds: { enabled: false }, rbac: { create: false } },
  "ext-auth for gateways": { operator, ...stores, extAuth },
  "ext-auth by TLS": {
    operator,
    ...stores,
    region: "eu",
    extAuth: {
      ...{ enabled: true, workspace: "ws_1", policy: "main/shop/orders", existingSecret: "gate", authorizePort: 0 },
      tls: { existingSecret: "ext-auth-tls", clientCaKey: "ca.crt" },
      service: { headless: true, annotations: { a: "b" } },
      extraVolumes: [{ name: "more", emptyDir: {} }],
      extraVolumeMounts: [{ name: "more", mountPath: "/more" }],
    },
    networkPolicy: { enabled: true, extAuthFrom: [{ podSelector: { matchLabels: { app: "envoy" } } }] },
    monitoring: { serviceMonitor: { enabled: true } },
  },
  "ext-auth on a throw-away Redis": {
    ...{ dev: { enabled: true }, operator },
    extAuth: { ...extAuth, existingSecret: "", replicas: 1, grpcPort: 0, policy: "pol_1" },
  },
  "a root key of one's own": { operator: { ...operator, rootKey: { existingSecret: "mine" } }, ...stores },
};

let cluster: TestKubernetes;
let namespace: TestNamespace;
/** Objects that the API server has accepted. Most objects are the same with other values. */
const accepted = new Set<string>();
beforeAll(async () => {
  await findHelm();
  cluster = await startKubernetes();
  namespace = await createTestNamespace(cluster, { "pod-security.kubernetes.io/warn": "restricted" });
  const crds = await findForeignCrds();
  for (const args of [
    ["apply", "--server-side", "--force-conflicts", "-f", crds],
    ["wait", "--for=condition=Established", "--timeout=60s", "-f", crds],
  ]) {
    const { exitCode, stderr } = await cluster.kubectl(args);
    if (exitCode !== 0) throw new Error(stderr);
  }
}, HELM_BUILD_MS + KUBERNETES_START_MS);
afterAll(() => namespace?.drop());

const podSpecs = (objects: readonly Rendered[]) =>
  objects
    .filter(({ kind }) => ["Deployment", "Job"].includes(kind))
    .map((object) => ({ object, spec: object.spec.template.spec }));

describe.each(Object.entries(MATRIX))("with %s", (_, values) => {
  let objects: Rendered[];
  beforeAll(async () => {
    objects = await render(values);
  });

  test("helm lint passes for the chart", async () => {
    expect(await lint(values)).toContain("0 chart(s) failed");
  });

  test("Kubernetes API accepts every chart object and all pods are restricted", async () => {
    const unseen = objects.filter((object) => !accepted.has(JSON.stringify(object)));
    const elsewhere = unseen.filter(({ metadata }) => metadata.namespace !== undefined);
    const here = unseen.filter((object) => !elsewhere.includes(object));
    for (const { items, where } of [
      { items: here, where: ["-n", namespace.name] },
      { items: elsewhere, where: [] },
    ]) {
      if (items.length === 0) continue;
      const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
      const args = ["apply", "--server-side", "--dry-run=server", "--force-conflicts", ...where, "-f", "-"];
      const { exitCode, stderr } = await cluster.kubectl(args, list);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    }
    for (const object of unseen) accepted.add(JSON.stringify(object));
  });

  test("chart containers have a read-only root file system, memory limits and no literal secrets", () => {
    for (const { object, spec } of podSpecs(objects)) {
      for (const container of spec.containers) {
        expect(container.securityContext, object.metadata.name).toMatchObject({
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
        });
        expect(container.resources.limits.memory, object.metadata.name).toBeDefined();
        if (!object.metadata.name.includes("-dev-")) expect(JSON.stringify(container)).not.toMatch(/:\/\/[^"]*:[^"]*@/);
      }
    }
  });

  test("chart objects have the release name and component labels", () => {
    for (const { kind, metadata } of objects) {
      if (kind !== "CustomResourceDefinition") expect(metadata.name).toMatch(/^postern(-|$)/);
      expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({ "app.kubernetes.io/instance": "postern" });
    }
    const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

const kindsOf = (objects: readonly Rendered[]) => new Set(objects.map(({ kind }) => kind));

describe("scoped to namespaces", () => {
  test("chart limited to namespaces creates a Role per namespace and no cluster-wide objects except CRDs", async () => {
    const objects = await render(MATRIX["two namespaces"] ?? {});
    expect([...kindsOf(objects)].filter((kind) => /^Cluster/.test(kind))).toEqual([]);
    const roles = objects.filter(({ kind, metadata }) => kind === "Role" && metadata.name.endsWith("-manifests"));
    expect(roles.map(({ metadata }) => metadata.namespace)).toEqual(["default", "kube-system"]);
  });
});

describe("several operators in a cluster", () => {
  test.each([
    { name: "a class of operator", classes: { controllerClass: "blue" }, args: ["--controller-class=blue"] },
    { name: "an operator beside those of classes", classes: { otherClasses: ["blue", "green"] }, args: [] },
    { name: "addresses in Secrets", classes: {}, args: [] },
  ])("webhook with $name selects its own pods", async ({ name, classes, args }) => {
    const objects = await render(MATRIX[name] ?? {});
    const selectorsIn = (configurations: readonly object[]) =>
      (configurations as Rendered[]).flatMap(({ webhooks }) =>
        webhooks.map(({ objectSelector }: { objectSelector?: object }) => objectSelector),
      );
    const made = objects.filter(({ kind }) => /WebhookConfiguration$/.test(kind));
    const wanted = webhookConfigurations({ name: "n", ownNamespace: "n", client: () => ({}), ...classes });
    expect(selectorsIn(made)).toEqual(selectorsIn(wanted));
    const [operatorPod] = podSpecs(objects).filter(({ object }) => object.metadata.name.endsWith("-operator"));
    const given: string[] = operatorPod?.spec.containers[0].args;
    expect(given.filter((arg) => arg.startsWith("--controller-class"))).toEqual(args);
  });
});

const deploymentOf = (objects: readonly Rendered[], part: string) =>
  podSpecs(objects).find(
    ({ object }) => object.kind === "Deployment" && object.metadata.labels?.["app.kubernetes.io/component"] === part,
  )?.spec;

describe("ext-auth for gateways", () => {
  const ofExtAuth = (objects: readonly Rendered[]) =>
    objects.filter(({ metadata }) => metadata.labels?.["app.kubernetes.io/component"] === "ext-auth");
  const named = (objects: readonly Rendered[], kind: string, name = "postern-ext-auth") =>
    ofExtAuth(objects).find((object) => object.kind === kind && object.metadata.name === name);
  const gateOf = (objects: readonly Rendered[]) => deploymentOf(objects, "ext-auth").containers[0];

  test("chart creates ext-auth gates only if the values enable them", async () => {
    expect(ofExtAuth(await render(MATRIX["addresses in Secrets"] ?? {}))).toEqual([]);
  });

  test("ext-auth gates have no app, use the local policy and have their own Redis user", async () => {
    const objects = await render(MATRIX["ext-auth for gateways"] ?? {});
    const { args, env, envFrom, ports, readinessProbe } = gateOf(objects);
    expect(args).toEqual([
      "--workspace=ws_1",
      "--policy=c/shop/orders",
      "--redis-prefix=ps",
      "--admin-port=8001",
      "--ext-auth-http-listen=8002",
      "--ext-auth-grpc-listen=8003",
      "--trusted-gateways=10.0.0.0/8,fd00::/8",
    ]);
    expect(envFrom).toEqual([{ secretRef: { name: "gate" } }]);
    expect(JSON.stringify(env)).not.toContain("REDIS_URL");
    expect(ports.map(({ name }: { name: string }) => name)).toEqual(["authorize", "grpc", "admin"]);
    expect(readinessProbe.httpGet).toEqual({ path: "/readyz", port: "admin" });
    expect(deploymentOf(objects, "ext-auth").automountServiceAccountToken).toBe(false);
    expect(named(objects, "PodDisruptionBudget")?.spec.maxUnavailable).toBe(1);
    expect(named(objects, "Service")?.spec.ports).toMatchObject([
      { port: 8002, appProtocol: "http" },
      { port: 8003, appProtocol: "kubernetes.io/h2c" },
    ]);
  });

  test("ext-auth gates with TLS get certificates, client CA and Service settings", async () => {
    const objects = await render(MATRIX["ext-auth by TLS"] ?? {});
    const { args, volumeMounts } = gateOf(objects);
    expect(args).toEqual([
      "--workspace=ws_1",
      "--policy=main/shop/orders",
      "--redis-prefix=ps",
      "--region=eu",
      "--admin-port=8001",
      "--ext-auth-grpc-listen=8003",
      "--ext-auth-tls-cert-file=/secrets/tls/tls.crt",
      "--ext-auth-tls-key-file=/secrets/tls/tls.key",
      "--ext-auth-client-ca-file=/secrets/tls/ca.crt",
    ]);
    expect(volumeMounts).toContainEqual({ name: "tls", mountPath: "/secrets/tls", readOnly: true });
    expect(named(objects, "Service")?.spec).toMatchObject({
      clusterIP: "None",
      ports: [{ name: "grpc", appProtocol: "https" }],
    });
    expect(named(objects, "NetworkPolicy")?.spec.ingress).toMatchObject([
      { from: [{ podSelector: { matchLabels: { app: "envoy" } } }], ports: [{ port: "grpc" }] },
      { ports: [{ port: "admin" }] },
    ]);
    const monitor = named(objects, "ServiceMonitor");
    const admin = named(objects, "Service", "postern-ext-auth-admin");
    expect(monitor?.spec.endpoints).toMatchObject([{ port: "admin", path: "/metrics" }]);
    expect(admin?.metadata.labels).toMatchObject(monitor?.spec.selector.matchLabels);
    expect(admin?.spec.ports).toMatchObject([{ name: "admin", port: 8001 }]);
  });

  test("ext-auth gates can be given a policy id, the trial Redis and a disruption budget", async () => {
    const objects = await render(MATRIX["ext-auth on a throw-away Redis"] ?? {});
    const { args, env } = gateOf(objects);
    expect(args).toContain("--policy=pol_1");
    expect(env.at(-1)).toMatchObject({ name: "REDIS_URL", valueFrom: { secretKeyRef: { name: "postern-addresses" } } });
    expect(named(objects, "PodDisruptionBudget")).toBeUndefined();
  });

  test("ext-auth gates get only options that a gate supports", async () => {
    for (const name of Object.keys(MATRIX).filter((one) => one.startsWith("ext-auth"))) {
      const args: string[] = gateOf(await render(MATRIX[name] ?? {})).args;
      for (const arg of args) expect(Object.keys(sidecar.options)).toContain(/^--([a-z-]+)=/.exec(arg)?.[1]);
    }
  });

  test.each([
    { without: { workspace: "" }, says: /extAuth.workspace/ },
    { without: { policy: "" }, says: /extAuth.policy/ },
    { without: { existingSecret: "" }, says: /extAuth.existingSecret/ },
    { without: { trustedGateways: [] }, says: /extAuth.trustedGateways/ },
    { without: { authorizePort: 0, grpcPort: 0 }, says: /nothing to ask/ },
    { without: { tls: { clientCaKey: "ca.crt" } }, says: /extAuth.tls.existingSecret/ },
  ])("chart rejects incomplete ext-auth values: $says", async ({ without, says }) => {
    await expect(render({ operator, ...stores, extAuth: { ...extAuth, ...without } })).rejects.toThrow(says);
  });
});

test("commands in an api-server container get database addresses, Redis prefix and encryption keys", async () => {
  const values = { ...MATRIX["everything optional"], redisPrefix: "shared" };
  const { args, env } = deploymentOf(await render(values), "api-server").containers[0];
  expect(env).toEqual(
    expect.arrayContaining([
      { name: "DATABASE_URL_FILE", value: "/secrets/database/url" },
      { name: "REDIS_URL_FILE", value: "/secrets/redis/url" },
      { name: "POSTERN_REDIS_PREFIX", value: "shared" },
      { name: "POSTERN_ENCRYPTION_KEYS_FILE", value: "/secrets/encryption-keys/keys" },
    ]),
  );
  // A setting given twice could be given inconsistently.
  expect(args.join(" ")).not.toMatch(/redis-prefix|encryption-keys/);
  const without = deploymentOf(await render(MATRIX["addresses in Secrets"] ?? {}), "api-server").containers[0];
  expect(JSON.stringify(without)).not.toContain("ENCRYPTION_KEYS");
});

describe("TLS of the API", () => {
  test("chart with API TLS uses HTTPS probes and gives the operator the CA", async () => {
    const objects = await render(MATRIX["an authority of one's own"] ?? {});
    const [api] = deploymentOf(objects, "api-server").containers;
    expect(api.args).toEqual(expect.arrayContaining(["--tls-cert-file=/secrets/tls/tls.crt"]));
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      expect(api[probe].httpGet, probe).toMatchObject({ port: "http", scheme: "HTTPS" });
    }
    const { containers, volumes } = deploymentOf(objects, "operator");
    expect(containers[0].args).toContain("--api-url=https://postern-api-server.postern.svc:80");
    expect(containers[0].env).toContainEqual({ name: "NODE_EXTRA_CA_CERTS", value: "/secrets/api-authority/ca.crt" });
    expect(volumes).toContainEqual({
      name: "api-authority",
      secret: { secretName: "api-tls", items: [{ key: "ca.crt", path: "ca.crt" }] },
    });
  });

  test("chart without API TLS uses HTTP probes and mounts no certificates", async () => {
    const objects = await render(MATRIX["addresses in Secrets"] ?? {});
    expect(deploymentOf(objects, "api-server").containers[0].readinessProbe.httpGet.scheme).toBe("HTTP");
    expect(JSON.stringify(objects)).not.toMatch(/NODE_EXTRA_CA_CERTS|tls-cert-file/);
  });
});

describe("the dashboard", () => {
  const containerOf = (objects: readonly Rendered[]) =>
    objects.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === "postern-api-server")?.spec.template
      .spec.containers[0];

  test("chart configures the dashboard's OIDC provider, client secret file and group roles", async () => {
    const objects = await render(MATRIX["everything optional"] ?? {});
    const { args, env, volumeMounts } = containerOf(objects);
    expect(args).toEqual(
      expect.arrayContaining([
        "--oidc-issuer=https://id.example.com/",
        "--oidc-client-id=postern",
        "--oidc-scopes=openid profile email",
        "--oidc-client-secret-file=/secrets/oidc/client-secret",
        "--dashboard-roles-file=/config/dashboard/roles.yaml",
      ]),
    );
    expect(env).toContainEqual({ name: "POSTERN_DASHBOARD_URL", value: "https://postern.example.com" });
    expect(volumeMounts).toContainEqual({ name: "oidc", mountPath: "/secrets/oidc", readOnly: true });
    const file = objects.find(
      ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === "postern-api-server-dashboard",
    );
    const roles = parseRolesFile(file?.data["roles.yaml"]);
    expect(roles(["platform team", "payments"])).toEqual([
      { workspace: "*", role: "admin" },
      { workspace: "shop", role: "viewer" },
    ]);
  });

  test("chart serves the dashboard without OIDC, and can disable the dashboard", async () => {
    const { args } = containerOf(await render(MATRIX["addresses in Secrets"] ?? {}));
    expect(args.join(" ")).not.toMatch(/oidc|dashboard/);
    const off = { operator, ...stores, apiServer: { dashboard: { enabled: false } } };
    expect(containerOf(await render(off)).args).toContain("--dashboard=off");
  });

  test.each([
    { oidc: { issuer: "https://id.example.com", clientId: "postern" } },
    { url: "https://postern.example.com", oidc: { issuer: "https://id.example.com" } },
    { groupRoles: { a: { shop: "owner" } } },
  ])("chart rejects dashboard values %j", async (dashboard) => {
    await expect(render({ operator, ...stores, apiServer: { dashboard } })).rejects.toThrow(/dashboard/);
  });
});

describe("the webhook's certificate by cert-manager", () => {
  test("chart with cert-manager mounts its certificate and gives the operator fewer permissions", async () => {
    const objects = await render(MATRIX["an issuer of the cluster"] ?? {});
    const certificates = objects.filter(({ apiVersion }) => apiVersion.startsWith("cert-manager.io/"));
    expect(certificates.map(({ kind, spec }) => [kind, spec.issuerRef])).toEqual([
      ["Certificate", { kind: "ClusterIssuer", name: "internal" }],
    ]);
    const configurations = objects.filter(({ kind }) => kind.endsWith("WebhookConfiguration"));
    expect(configurations.map(({ metadata }) => metadata.annotations)).toEqual(
      Array(2).fill({ "cert-manager.io/inject-ca-from": "postern/postern-webhook" }),
    );
    const [service] = objects.filter(({ metadata }) => metadata.name === "postern-webhook");
    expect(service).toMatchObject({ kind: "Service" });
    expect(certificates[0]?.spec.dnsNames).toEqual(["postern-webhook.postern.svc"]);
    const rules = objects.filter(({ kind }) => /Role$/.test(kind)).map(({ rules }) => JSON.stringify(rules));
    expect(rules.filter((rule) => /webhookconfigurations|"postern-webhook"/.test(rule))).toEqual([]);
    expect(objects.filter(({ kind, metadata }) => kind === "Secret" && /webhook/.test(metadata.name))).toEqual([]);
    expect(JSON.stringify(objects)).toContain("--webhook-cert-dir=/secrets/webhook");
  });

  test("chart creates a stable cert-manager CA when no issuer is named", async () => {
    const objects = await render(MATRIX["an authority of one's own"] ?? {});
    const issued = objects
      .filter(({ kind }) => kind === "Certificate")
      .map(({ metadata, spec }) => ({ name: metadata.name, isCA: spec.isCA ?? false, by: spec.issuerRef.name }));
    expect(issued).toEqual([
      { name: "postern-webhook-authority", isCA: true, by: "postern-webhook-self-signed" },
      { name: "postern-webhook", isCA: false, by: "postern-webhook" },
    ]);
  });
});

test("chart permits ApiKeys only in listed namespaces, with a Role in each", async () => {
  const objects = await render(MATRIX["everything optional"] ?? {});
  const onSecrets = objects.filter(
    ({ kind, rules = [], metadata }) =>
      /Role$/.test(kind) &&
      !/-root-key$/.test(metadata.name) &&
      rules.some(({ resources }: { resources: string[] }) => resources.includes("secrets")),
  );
  expect(
    onSecrets.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? "own"}/${metadata.name}`).sort(),
  ).toEqual([
    "Role default/postern-operator-api-keys",
    "Role kube-public/postern-operator-api-keys",
    "Role own/postern-operator",
  ]);
});

describe("the roles of users", () => {
  test("aggregated ClusterRoles cover all Postern kinds but not their status", async () => {
    const objects = await render(MATRIX["addresses in Secrets"] ?? {});
    const kinds = objects
      .filter(({ kind }) => kind === "CustomResourceDefinition")
      .map(({ spec }) => spec.names.plural)
      .sort();
    for (const persona of ["view", "edit"]) {
      const role = objects.find(
        ({ kind, metadata }) => kind === "ClusterRole" && metadata.name.endsWith(`-${persona}`),
      );
      expect(role?.rules.flatMap(({ resources }: { resources: string[] }) => resources).sort(), persona).toEqual(kinds);
    }
  });
});

describe("the CRDs", () => {
  const crdsOf = async (crds: object) =>
    (await render({ ...MATRIX["addresses in Secrets"], crds })).filter(
      ({ kind }) => kind === "CustomResourceDefinition",
    );

  test("chart installs the CRDs of crds/ and keeps them on uninstall by default", async () => {
    const kept = await crdsOf({});
    const names = readdirSync(resolve(TEMPLATES, "../../../crds")).map((file) =>
      file.replace(/^postern\.dev_(.*)\.yaml$/, "$1.postern.dev"),
    );
    expect(kept.map(({ metadata }) => metadata.name).sort()).toEqual(names.sort());
    for (const { metadata } of kept) expect(metadata.annotations).toEqual({ "helm.sh/resource-policy": "keep" });
    for (const { metadata } of await crdsOf({ keep: false })) expect(metadata.annotations).toBeUndefined();
  });
});

describe("a Job", () => {
  const jobOf = async (values: object) =>
    (await render({ ...MATRIX["addresses by value"], ...values })).find(({ kind }) => kind === "Job")?.metadata.name;

  test("chart renames a Job when its image or an address changes", async () => {
    const before = await jobOf({});
    expect(await jobOf({ operator: { ...operator, replicas: 3 } })).toBe(before);
    expect(await jobOf({ image: { tag: "next" } })).not.toBe(before);
    expect(await jobOf({ database: { url: "postgres://u:other@h/d" } })).not.toBe(before);
  });

  test("migration Job uses the schema owner, and api-servers use another user", async () => {
    const objects = await render(MATRIX["everything optional"] ?? {});
    const specOf = (kind: string, part: string) =>
      podSpecs(objects).find(
        ({ object }) => object.kind === kind && object.metadata.labels?.["app.kubernetes.io/component"] === part,
      )?.spec;
    for (const job of ["migrate", "root-key"]) {
      expect(specOf("Job", job).containers[0].env).toEqual([
        { name: "DATABASE_URL_FILE", value: "/secrets/database/url" },
      ]);
      expect(specOf("Job", job).volumes).toEqual([
        { name: "database", secret: { secretName: "db-owner", items: [{ key: "address", path: "url" }] } },
      ]);
    }
    const { volumes, containers } = specOf("Deployment", "api-server");
    expect(volumes).toContainEqual({
      name: "database",
      secret: { secretName: "db", items: [{ key: "url", path: "url" }] },
    });
    expect(containers[0].env).toContainEqual({ name: "DATABASE_URL_FILE", value: "/secrets/database/url" });
    expect(containers[0].args).toContain("--migrate=off");
  });

  test("chart without a migration Job lets api-servers migrate", async () => {
    const objects = await render({ ...MATRIX["addresses in Secrets"], migrations: { enabled: false } });
    expect(JSON.stringify(objects)).not.toMatch(/--migrate=off|postern-migrate/);
    // The Job does not run again after a trial Postgres has lost its data.
    expect(JSON.stringify(await render(MATRIX["a throw-away pair"] ?? {}))).not.toContain("--migrate=off");
  });
});

describe("injection", () => {
  const argsOf = (objects: readonly Rendered[], part: string): string[] =>
    podSpecs(objects).find(
      ({ object }) => object.kind === "Deployment" && object.metadata.labels?.["app.kubernetes.io/component"] === part,
    )?.spec.containers[0].args;

  test("webhook configuration uses the operator Service name that the certificate is issued for", async () => {
    const objects = await render(MATRIX["addresses in Secrets"] ?? {}, "system");
    const args = argsOf(objects, "operator");
    const service = objects.find(({ kind, metadata }) => kind === "Service" && metadata.name === "postern-webhook");
    expect(service?.spec.ports).toMatchObject([{ port: 443, targetPort: "webhook" }]);
    expect(args).toContain("--webhook-hosts=postern-webhook.system.svc");
    for (const kind of ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]) {
      const configuration = objects.find((object) => object.kind === kind);
      expect(args).toContain(`--webhook-configuration=${configuration?.metadata.name}`);
      for (const { clientConfig } of configuration?.webhooks ?? []) {
        expect(clientConfig.service).toMatchObject({ name: "postern-webhook", namespace: "system", port: 443 });
      }
    }
    const rules = objects.filter(({ kind }) => /Role$/.test(kind)).flatMap((object) => object.rules);
    const names = rules.flatMap(({ resources, resourceNames = [] }) =>
      resources.some((name: string) => /webhookconfigurations|^secrets$/.test(name)) ? resourceNames : [],
    );
    expect(names).toEqual(expect.arrayContaining(["postern-webhook", "system-postern"]));
    const mutating = objects.find(({ kind }) => kind === "MutatingWebhookConfiguration");
    for (const { namespaceSelector, failurePolicy } of mutating?.webhooks ?? []) {
      expect(JSON.stringify(namespaceSelector)).toContain('"NotIn","values":["kube-system","system"]');
      expect(failurePolicy).toBe("Fail");
    }
  });

  test("injected gates get Redis addresses but no api-server credentials", async () => {
    const envOf = async (values: object) =>
      argsOf(await render(values), "operator").find((arg) => arg.startsWith("--gate-env="));
    expect(await envOf(MATRIX["addresses in Secrets"] ?? {})).toContain("REDIS_URL=rediss://redis.example:6379,");
    expect(await envOf(MATRIX["addresses by value"] ?? {})).toContain(",EVENTS_REDIS_URL=redis://events:6379");
    const url = "rediss://user:secret@h:6379";
    const given = await envOf({ operator, database, redis: { url }, region: "eu" });
    expect(given).toContain("=REDIS_URL=rediss://h:6379,");
    expect(given).toContain("POSTERN_REGION=eu");
    expect(given).not.toContain("secret");
  });

  test("chart passes the error documentation URL to all components that return errors", async () => {
    const docsUrl = "https://docs.example/postern";
    const objects = await render({ operator, ...stores, extAuth, docsUrl });
    for (const part of ["api-server", "ext-auth"]) expect(argsOf(objects, part)).toContain(`--docs-url=${docsUrl}`);
    const gateEnv = argsOf(objects, "operator").find((arg) => arg.startsWith("--gate-env="));
    expect(gateEnv?.split(",")).toContain(`POSTERN_DOCS_URL=${docsUrl}`);
    // The environment values of gates are separated by commas.
    for (const wrong of ["docs.example", "https://docs.example,REDIS_URL=redis://mine"]) {
      await expect(render({ operator, ...stores, docsUrl: wrong })).rejects.toThrow(/docsUrl/);
    }
  });

  test("api-servers have a service account token only if they review tokens", async () => {
    for (const [name, asks] of [
      ["addresses in Secrets", true],
      ["gates with a Secret", false],
      ["no injection", false],
      ["two namespaces", false],
    ] as const) {
      const objects = await render(MATRIX[name] ?? {});
      const apiServer = podSpecs(objects).find(({ object }) => object.metadata.name.endsWith("-api-server"));
      expect(apiServer?.spec.automountServiceAccountToken, name).toBe(asks);
      expect(argsOf(objects, "api-server").includes("--gate-credentials-cluster=c"), name).toBe(asks);
      const mayAsk = objects.some(({ rules }) => JSON.stringify(rules ?? "").includes("tokenreviews"));
      expect(mayAsk, name).toBe(asks);
    }
  });
});

describe("values", () => {
  test.each([
    { name: "no database", values: { operator, redis, injection }, says: /set database.existingSecret/ },
    {
      name: "an authority that gates cannot have",
      values: { operator, ...stores, apiServer: { tls: { existingSecret: "api-tls", caKey: "ca.crt" } } },
      says: /gates are in other namespaces and cannot have this authority/,
    },
    { name: "no Redis", values: { operator, database, injection }, says: /set redis.existingSecret/ },
    { name: "no name of the cluster", values: stores, says: /set operator.clusterName/ },
    {
      name: "an address twice",
      values: { operator, ...stores, database: { ...database, url: "postgres://h/d" } },
      says: /not both/,
    },
    { name: "a word that is none", values: { operator, ...stores, apiSrever: {} }, says: /apiSrever/ },
    {
      name: "a number that is too small",
      values: { operator, ...stores, apiServer: { port: 0 } },
      says: /minimum/,
    },
    { name: "a Redis that gates cannot find", values: { operator, database, redis }, says: /set injection.redisUrl/ },
  ])("chart rejects values with $name and explains the reason", async ({ values, says }) => {
    await expect(render(values)).rejects.toThrow(says);
  });

  test("every chart value is used by a template", () => {
    const read = readdirSync(TEMPLATES)
      .map((name) => readFileSync(join(TEMPLATES, name), "utf8"))
      .join("\n");
    const unread = leavesOf(Values)
      .map(({ path }) => path)
      .filter((path) => path !== "global" && !new RegExp(`\\.${path.split(".").at(-1)}\\b`).test(read));
    expect(unread).toEqual([]);
  });
});
