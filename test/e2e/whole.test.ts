import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ALL_GRANTS } from "../../core/permissions/root-key.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
  type TestNamespace,
} from "../harness/kubernetes.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { PROGRAM, startProcess } from "../harness/process.ts";
import { createTestRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";

/*
 * The complete system except the pod: kubectl applies the committed CRDs and four manifests, and api-server, operator, gate and app run as
 * separate processes, as in a cluster.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const LISTENING = /"url":"(http:\/\/127\.0\.0\.1:\d+)"/;

let kubernetes: TestKubernetes;
let namespace: TestNamespace;
let apiUrl: string;
let rootKey: string;
let workspaceId: string;
let env: Record<string, string>;
const closers: Array<() => Promise<unknown>> = [];

async function start(args: string[], ready: RegExp): Promise<string> {
  const child = await startProcess(process.execPath, args, { cwd: ROOT, env, readyLine: ready });
  closers.push(() => child.stop());
  return ready.exec(child.stdout())?.[1] ?? ready.exec(child.stderr())?.[1] ?? "";
}

beforeAll(async () => {
  kubernetes = await startKubernetes();
  namespace = await createTestNamespace(kubernetes);
  closers.push(() => namespace.drop());
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const redis = await createTestRedis();
  closers.push(() => redis.close());
  env = { DATABASE_URL: database.url, REDIS_URL: redis.url, POSTERN_REDIS_PREFIX: redis.prefix };

  const rootkey = await startProcess(
    process.execPath,
    [PROGRAM, "rootkey", "create", "--json", "--permissions", ALL_GRANTS.join(",")],
    { cwd: ROOT, env },
  );
  await rootkey.exited;
  ({ rootKey, workspaceId } = JSON.parse(rootkey.stdout()));
  apiUrl = await start([PROGRAM, "api-server", "--host", "127.0.0.1", "--port", "0"], LISTENING);

  const crds = await kubernetes.kubectl(["apply", "-f", join(ROOT, "crds")]);
  expect(crds).toMatchObject({ exitCode: 0 });
  env = { ...env, POSTERN_ROOT_KEY: rootKey, KUBECONFIG: kubernetes.kubeconfigPath };
  const cluster = ["--cluster", namespace.name, "--namespaces", namespace.name, "--admin-port", "0"];
  await start([PROGRAM, "operator", "--api-url", apiUrl, ...cluster], /"msg":"watching"/);
}, KUBERNETES_START_MS);

afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

interface Limits {
  writes: number;
}

/** The four kinds of the quickstart in the test namespace. */
const manifests = ({ writes }: Limits) => `
apiVersion: postern.dev/v1alpha1
kind: Role
metadata: { name: editor, namespace: ${namespace.name} }
spec: { name: orders.editor, deletionPolicy: Delete, permissions: [orders.read, orders.write] }
---
apiVersion: postern.dev/v1alpha1
kind: RatelimitNamespace
metadata: { name: public-api, namespace: ${namespace.name} }
spec: { name: public-api }
---
apiVersion: postern.dev/v1alpha1
kind: RatelimitOverride
metadata: { name: premium, namespace: ${namespace.name} }
spec: { namespaceRef: { name: public-api }, identifier: "premium_*", limit: 2, duration: 1h }
---
apiVersion: postern.dev/v1alpha1
kind: ApiKeyPolicy
metadata: { name: orders, namespace: ${namespace.name} }
spec:
  api: { name: orders }
  target: { port: http }
  rules:
    - match: { methods: [GET], path: { prefix: /healthz } }
      access: Anonymous
    - match: { methods: [POST], path: { prefix: /orders } }
      permissions: orders.write
      ratelimits:
        - { name: writes, limit: ${writes}, duration: 1h }
    - match: { methods: [GET], path: { prefix: /reports } }
      ratelimits:
        - { namespace: public-api, identifier: Identity, limit: 100, duration: 1h }
`;

async function apply(yaml: string) {
  const applied = await kubernetes.kubectl(["apply", "-f", "-"], yaml);
  expect(applied).toMatchObject({ exitCode: 0, stderr: "" });
}

const get = async (kind: string, name: string) => {
  const { stdout } = await kubernetes.kubectl(["get", kind, name, "-n", namespace.name, "-o", "json"]);
  return JSON.parse(stdout) as { status?: Record<string, unknown> };
};

async function call(procedure: string, body: unknown) {
  const response = await fetch(`${apiUrl}/v2/${procedure}`, {
    method: "POST",
    headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  return { status: response.status, body: (await response.json()) as any };
}

describe("from manifests to a protected app", () => {
  let sidecarUrl: string;
  let key: string;

  const send = async (method: string, path: string, withKey = key) => {
    const response = await fetch(`${sidecarUrl}${path}`, { method, headers: { authorization: `Bearer ${withKey}` } });
    await response.arrayBuffer();
    return response;
  };

  test("kubectl wait returns when four manifests are Ready", async () => {
    await apply(manifests({ writes: 3 }));
    for (const object of ["keyrole/editor", "rlns/public-api", "rlo/premium", "akp/orders"]) {
      const args = ["wait", object, "-n", namespace.name, "--for=condition=Ready", "--timeout=30s"];
      expect(await kubernetes.kubectl(args)).toMatchObject({ exitCode: 0 });
    }
  });

  test("gate process enforces the manifests", async () => {
    const { status } = await get("akp", "orders");
    const upstream = await start([join(ROOT, "examples/quickstart/app.ts"), "0"], /(http:\/\/\S+)/);
    const ids = ["--workspace", workspaceId, "--policy", String(status?.policyId), "--upstream", upstream];
    sidecarUrl = await start(
      [PROGRAM, "sidecar", ...ids, "--drain-timeout", "0", "--host", "127.0.0.1", "--port", "0", "--admin-port", "0"],
      LISTENING,
    );
    const made = await call("keys.createKey", {
      apiId: status?.apiId,
      roles: ["orders.editor"],
      externalId: "premium_7",
    });
    expect(made.status).toBe(200);
    key = made.body.data.key;

    await waitFor("the sidecar to know the key", async () => (await send("GET", "/any")).status === 200);
    expect((await fetch(`${sidecarUrl}/healthz`)).status).toBe(200);
    expect((await fetch(`${sidecarUrl}/orders`, { method: "POST" })).status).toBe(401);
    const statuses = [];
    for (let turn = 0; turn < 4; turn += 1) statuses.push((await send("POST", "/orders")).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
  });

  test("gate treats the root key and keys of another API as unknown", async () => {
    expect((await send("GET", "/any", rootKey)).status).toBe(401);
    const { apiId } = (await call("apis.createApi", { name: "another" })).body.data;
    const others = (await call("keys.createKey", { apiId })).body.data.key;
    expect((await call("keys.verifyKey", { key: others })).body.data.code).toBe("VALID");
    expect((await send("GET", "/any", others)).status).toBe(401);
    expect((await send("GET", "/any")).status).toBe(200);
  });

  test("pattern override replaces the namespace limit at the gate", async () => {
    const first = await send("GET", "/reports");
    expect(first.headers.get("ratelimit-limit")).toBe("2");
    expect((await send("GET", "/reports")).status).toBe(200);
    expect((await send("GET", "/reports")).status).toBe(429);
  });

  test("Enforced condition reports that the gate acknowledged this generation", async () => {
    await waitFor(
      "Enforced",
      async () => {
        const conditions = (await get("akp", "orders")).status?.conditions as Array<{ type: string; status: string }>;
        return conditions.some(({ type, status }) => type === "Enforced" && status === "True");
      },
      { deadlineMs: 40_000, everyMs: 200 },
    );
  });

  test("changed limit is enforced within a second of kubectl apply", async () => {
    expect((await send("POST", "/orders")).status).toBe(429);
    await apply(manifests({ writes: 50 }));
    const appliedAt = performance.now();
    await waitFor("the new limit", async () => (await send("POST", "/orders")).status === 200, { everyMs: 5 });
    expect(performance.now() - appliedAt).toBeLessThan(1000);
  });

  test("API write to a managed role is rejected with an error that names its manifest", async () => {
    const reply = await call("permissions.deleteRole", { role: "orders.editor" });
    expect(reply.status).toBe(409);
    expect(reply.body.error.type).toMatch(/\/managed_by_manifest$/);
    expect(reply.body.error.detail).toContain(`${namespace.name}/Role/${namespace.name}/editor`);
  });

  test("kubectl delete removes stored objects but keeps the API with keys", async () => {
    const { status } = await get("akp", "orders");
    const args = ["delete", "akp/orders", "rlo/premium", "rlns/public-api", "keyrole/editor", "-n", namespace.name];
    expect(await kubernetes.kubectl([...args, "--timeout=30s"])).toMatchObject({ exitCode: 0 });
    expect((await call("permissions.getRole", { role: "orders.editor" })).status).toBe(404);
    expect((await call("ratelimit.getNamespace", { namespace: "public-api" })).status).toBe(404);
    expect((await call("policies.listPolicies", {})).body.data).toEqual([]);
    expect((await call("keys.verifyKey", { key })).body.data).toMatchObject({ valid: true, code: "VALID" });
    // The API is unmanaged now, so it can be changed.
    expect((await call("apis.updateApi", { apiId: status?.apiId, name: "orphan" })).status).toBe(200);
  });

  test("gate of a deleted policy keeps the last version and rejects requests without a key", async () => {
    expect((await fetch(`${sidecarUrl}/orders`, { method: "POST" })).status).toBe(401);
    expect((await send("GET", "/any")).status).toBe(200);
  });
});
