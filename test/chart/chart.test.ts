import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { leavesOf } from "../../scripts/generate/chart/describe-values.ts";
import { Values } from "../../scripts/generate/chart/values.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
} from "../harness/kubernetes.ts";
import { findHelm } from "../harness/parts/helm.ts";
import { lint, type Rendered, render } from "./render.ts";

const TEMPLATES = resolve(import.meta.dirname, "../../charts/postern/templates");
const HELM_BUILD_MS = 1_200_000;

const operator = { clusterName: "c" };
const database = { existingSecret: "db" };
const redis = { existingSecret: "redis" };
/** Values as an installation may have them, by what is special about them. */
const MATRIX: Readonly<Record<string, object>> = {
  "a throw-away pair": { dev: { enabled: true }, operator },
  "addresses in Secrets": { operator, database, redis },
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
    },
    database: { ...database, migration: { existingSecret: "db-owner", existingSecretKey: "address" } },
    redis,
    eventsRedis: { existingSecret: "events" },
    analytics: { existingSecret: "clickhouse" },
    region: "eu",
    commonLabels: { team: "platform" },
    image: { registry: "registry.example/postern", tag: "1.2.3", pullSecrets: [{ name: "pull" }] },
    networkPolicy: { enabled: true },
    monitoring: {
      serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
      prometheusRule: { enabled: true },
      dashboards: { enabled: true },
    },
    runAsUser: null,
  },
  "one replica": { operator: { ...operator, replicas: 1 }, apiServer: { replicas: 1 }, database, redis },
  "several workspaces": {
    operator: { ...operator, rootKeys: { existingSecret: "keys", defaultWorkspace: "d" }, tenancy: { workspaces: [] } },
    database,
    redis,
  },
  "two namespaces": { operator, database, redis, scopedNamespaces: ["default", "kube-system"] },
  "nothing of the cluster": { operator, database, redis, crds: { enabled: false }, rbac: { create: false } },
  "a root key of one's own": { operator: { ...operator, rootKey: { existingSecret: "mine" } }, database, redis },
};
/** Kinds of operators that the API server of the tests does not have. */
const FOREIGN = ["ServiceMonitor", "PrometheusRule"];

beforeAll(findHelm, HELM_BUILD_MS);

const podSpecs = (objects: readonly Rendered[]) =>
  objects
    .filter(({ kind }) => ["Deployment", "Job"].includes(kind))
    .map((object) => ({ object, spec: object.spec.template.spec }));

describe.each(Object.entries(MATRIX))("with %s", (_, values) => {
  let objects: Rendered[];
  let cluster: TestKubernetes;
  let namespace: string;
  beforeAll(async () => {
    cluster = await startKubernetes();
    ({ name: namespace } = await createTestNamespace(cluster));
    objects = await render(values, namespace);
  }, KUBERNETES_START_MS);

  test("helm lint finds nothing", async () => {
    expect(await lint(values)).toContain("0 chart(s) failed");
  });

  test("the Kubernetes API accepts every object, and calls every pod restricted", async () => {
    const level = "pod-security.kubernetes.io/warn=restricted";
    await cluster.kubectl(["label", "namespace", namespace, level, "--overwrite"]);
    const known = objects.filter(({ kind }) => !FOREIGN.includes(kind));
    const elsewhere = known.filter(({ metadata }) => metadata.namespace !== undefined);
    const here = known.filter((object) => !elsewhere.includes(object));
    for (const { items, where } of [
      { items: here, where: ["-n", namespace] },
      { items: elsewhere, where: [] },
    ]) {
      if (items.length === 0) continue;
      const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
      const args = ["apply", "--server-side", "--dry-run=server", "--force-conflicts", ...where, "-f", "-"];
      const { exitCode, stderr } = await cluster.kubectl(args, list);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    }
  });

  test("each container has a read-only root and a limit of memory, and no pod has a secret by value", () => {
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

  test("objects are named for the release and labelled as its parts", () => {
    for (const { kind, metadata } of objects) {
      if (kind !== "CustomResourceDefinition") expect(metadata.name).toMatch(/^(t-\w+-)?postern(-|$)/);
      expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({ "app.kubernetes.io/instance": "postern" });
    }
    const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

const kindsOf = (objects: readonly Rendered[]) => new Set(objects.map(({ kind }) => kind));

describe("scoped to namespaces", () => {
  test("nothing is of the whole cluster but the CRDs: a Role in each namespace", async () => {
    const objects = await render(MATRIX["two namespaces"] ?? {});
    expect([...kindsOf(objects)].filter((kind) => /^Cluster/.test(kind))).toEqual([]);
    const roles = objects.filter(({ kind, metadata }) => kind === "Role" && metadata.name.endsWith("-manifests"));
    expect(roles.map(({ metadata }) => metadata.namespace)).toEqual(["default", "kube-system"]);
  });
});

describe("the CRDs", () => {
  const crdsOf = async (crds: object) =>
    (await render({ ...MATRIX["addresses in Secrets"], crds })).filter(
      ({ kind }) => kind === "CustomResourceDefinition",
    );

  test("are those of crds/, and stay when the release goes unless that is not wanted", async () => {
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

  test("is another one when its image or an address changes, because Jobs cannot be changed", async () => {
    const before = await jobOf({});
    expect(await jobOf({})).toBe(before);
    expect(await jobOf({ image: { tag: "next" } })).not.toBe(before);
    expect(await jobOf({ database: { url: "postgres://u:other@h/d" } })).not.toBe(before);
  });

  test("migrates as the user that owns the schema; api-servers work as the other one", async () => {
    const objects = await render(MATRIX["everything optional"] ?? {});
    const specOf = (kind: string, part: string) =>
      podSpecs(objects).find(
        ({ object }) => object.kind === kind && object.metadata.labels?.["app.kubernetes.io/component"] === part,
      )?.spec;
    const [variable] = specOf("Job", "migrate").containers[0].env;
    expect(variable).toMatchObject({
      name: "DATABASE_URL",
      valueFrom: { secretKeyRef: { name: "db-owner", key: "address" } },
    });
    const { volumes, containers } = specOf("Deployment", "api-server");
    expect(volumes).toContainEqual({
      name: "database",
      secret: { secretName: "db", items: [{ key: "url", path: "url" }] },
    });
    expect(containers[0].env).toContainEqual({ name: "DATABASE_URL_FILE", value: "/secrets/database/url" });
  });
});

describe("values", () => {
  test.each([
    { name: "no database", values: { operator, redis }, says: /set database.existingSecret/ },
    { name: "no Redis", values: { operator, database }, says: /set redis.existingSecret/ },
    { name: "no name of the cluster", values: { database, redis }, says: /set operator.clusterName/ },
    {
      name: "an address twice",
      values: { operator, redis, database: { ...database, url: "postgres://h/d" } },
      says: /not both/,
    },
    { name: "a word that is none", values: { operator, database, redis, apiSrever: {} }, says: /apiSrever/ },
    {
      name: "a number that is too small",
      values: { operator, database, redis, apiServer: { port: 0 } },
      says: /minimum/,
    },
  ])("with $name are refused with the reason", async ({ values, says }) => {
    await expect(render(values)).rejects.toThrow(says);
  });

  test("are each read by a template", () => {
    const read = readdirSync(TEMPLATES)
      .map((name) => readFileSync(join(TEMPLATES, name), "utf8"))
      .join("\n");
    const unread = leavesOf(Values)
      .map(({ path }) => path)
      .filter((path) => path !== "global" && !new RegExp(`\\.${path.split(".").at(-1)}\\b`).test(read));
    expect(unread).toEqual([]);
  });
});
