import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { type Cluster, conditionOf, openCluster } from "./cluster.ts";
import { administer, CLUSTER_NAME, imageOf, install, type Place, RELEASE } from "./installation.ts";
import { guardedApp, pod, policy, programs, role } from "./sample-app.ts";
import { readSettings } from "./settings.ts";

/*
 * One installation from its first minute to its last: each test goes on where the one before it ended, and the first failure ends the
 * file.
 */

const settings = readSettings(process.env);
// The same again, for work on the suite itself: with E2E_KEEP=1 an installation stays.
const suffix = process.env.E2E_SUFFIX ?? randomBytes(3).toString("hex");
const namespace = `postern-${suffix}`;
const shop = `shop-${suffix}`;
const image = imageOf(settings, "sidecar", settings.tag);
const ORDERS = { kind: "apikeypolicies", name: "orders", namespace: shop };

let cluster: Cluster;
let place: Place;
/** A key with the role, one without, and the API that they belong to. */
let keys: { good: string; lacking: string };
let apiId: string;
let rootKey: string;

beforeAll(async () => {
  cluster = await openCluster(settings);
  place = { cluster, settings, namespace };
});
afterAll(async () => {
  if (process.env.E2E_KEEP === "1") return;
  // Objects first: while the operator is there, it takes off their finalizers.
  await cluster.run(["delete", "namespace", shop, "--ignore-not-found", "--timeout=90s"]);
  await cluster.run(["delete", "namespace", namespace, "--ignore-not-found", "--timeout=90s"]);
});

/** Asks once, from inside the cluster. */
async function ask(path: string, options: { key?: string; method?: string } = {}): Promise<number> {
  const { key, method = "GET" } = options;
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const script = `fetch('http://orders${path}', ${JSON.stringify({ method, headers })}).then((r) => console.log(r.status))`;
  return Number(await cluster.kubectl(["-n", shop, "exec", "client", "--", "node", "-e", script]));
}

/** Calls the API from inside the cluster. */
async function call<Data>(procedure: string, body: object): Promise<Data> {
  const request = {
    method: "POST",
    headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const url = `http://${RELEASE}-api-server.${namespace}/v2/${procedure}`;
  const script = `fetch(${JSON.stringify(url)}, ${JSON.stringify(request)}).then(async (r) => console.log(await r.text()))`;
  const answer = JSON.parse(await cluster.kubectl(["-n", shop, "exec", "client", "--", "node", "-e", script]));
  if (answer.data === undefined) throw new Error(`${procedure}: ${JSON.stringify(answer)}`);
  return answer.data as Data;
}

const untilAnswered = (status: number, path: string, options: { key?: string; method?: string } = {}) =>
  waitFor(`${status} for ${path}`, async () => (await ask(path, options)) === status, {
    deadlineMs: 30_000,
    everyMs: 200,
  });

const rolledOut = (what: string, inNamespace: string) =>
  cluster.kubectl(["-n", inNamespace, "rollout", "status", what, "--timeout=180s"]);

const podsOf = (component: string) =>
  cluster.list("pods", namespace, `app.kubernetes.io/component=${component},app.kubernetes.io/instance=${RELEASE}`);

describe("install", () => {
  test("one helm install brings up two api-servers and two operators", async () => {
    await install(place, settings.previousTag ?? settings.tag);
    for (const component of ["api-server", "operator"]) {
      const pods = await podsOf(component);
      expect(pods.length, component).toBe(2);
      expect(pods.map(({ status }) => status.containerStatuses[0].ready)).toEqual([true, true]);
    }
  });

  test("all of its pods are restricted, as the namespace can demand", async () => {
    const level = "pod-security.kubernetes.io/enforce=restricted";
    const said = await cluster.run(["label", "--dry-run=server", "--overwrite", "namespace", namespace, level]);
    expect(said).toMatchObject({ code: 0, stderr: "" });
  });

  test("the operator's root key is not the bootstrap key, and no token is mounted where none is used", async () => {
    const secret = await cluster.get("secret", `${RELEASE}-operator-root-key`, namespace);
    expect(Object.keys(secret?.data)).toEqual(["rootKey"]);
    for (const { spec } of await podsOf("api-server")) expect(spec.automountServiceAccountToken).toBe(false);
  });
});

describe("first policy", () => {
  test("a policy becomes Ready", async () => {
    await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: shop } });
    await cluster.apply(role(shop), policy(shop));
    await cluster.until("Ready", ORDERS, (object) => conditionOf(object, "Ready") !== undefined);
  });

  test("a guarded app answers 401 without a key, 200 with one that has the role, 403 with one that has not", async () => {
    const grants =
      "api.*.create_key,api.*.read_api,api.*.update_key,api.*.read_key,api.*.verify_key,rbac.*.add_role_to_key";
    const made = await administer<{ rootKey: string; workspaceId: string }>(place, [
      "rootkey",
      "create",
      `--permissions=${grants}`,
    ]);
    const { workspaceId } = made;
    rootKey = made.rootKey;
    const redisUrl = `redis://:postern@${RELEASE}-dev-redis.${namespace}:6379`;
    await cluster.apply(
      programs(shop),
      pod(shop, "client", image, ["node", "-e", "setInterval(() => {}, 1e6)"]),
      ...guardedApp({ namespace: shop, image, workspaceId, cluster: CLUSTER_NAME, redisUrl }),
    );
    await rolledOut("deploy/orders", shop);
    await cluster.kubectl(["-n", shop, "wait", "pod/client", "--for=condition=Ready", "--timeout=60s"]);

    apiId = await apiOf("orders");
    const make = (body: object) => call<{ key: string }>("keys.createKey", { apiId, ...body });
    keys = {
      good: (await make({ roles: ["orders.editor"], externalId: "acme" })).key,
      lacking: (await make({})).key,
    };
    await untilAnswered(200, "/orders", { key: keys.good, method: "POST" });
    expect(await ask("/orders", { method: "POST" })).toBe(401);
    expect(await ask("/orders", { key: keys.lacking, method: "POST" })).toBe(403);
    expect(await ask("/healthz")).toBe(200);
  });
});

/** The API that a policy's keys belong to. */
async function apiOf(name: string): Promise<string> {
  const object = await cluster.until("stored", { ...ORDERS, name }, ({ status }) => status?.policyId !== undefined);
  const stored = await call<{ policy: { apiId: string } }>("policies.getPolicy", { policyId: object.status.policyId });
  return stored.policy.apiId;
}
