import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { type Cluster, conditionOf, type KubeObject, openCluster } from "./cluster.ts";
import { type Inside, insideOf } from "./inside.ts";
import { administer, imageOf, install, ourCrds, type Place, present, RELEASE } from "./installation.ts";
import { badOf, type Load, startLoad } from "./load.ts";
import { APP_PORT, apiKey, guardedApp, guardedJob, pod, policy, programs, role, secretsRole } from "./sample-app.ts";
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
/** Of the pods that are there for their Node. */
const image = imageOf(settings, "sidecar", settings.tag);
const ORDERS = { kind: "apikeypolicies", name: "orders", namespace: shop };

let cluster: Cluster;
let place: Place;
/** A key with the role, one without, and the API that they belong to. */
let keys: { good: string; lacking: string };
let apiId: string;
let rootKey = "";
let ask: Inside["ask"];
let call: Inside["call"];

beforeAll(async () => {
  cluster = await openCluster(settings);
  place = { cluster, settings, namespace };
  ({ ask, call } = insideOf(place, { namespace: shop, rootKey: () => rootKey }));
});
afterAll(async () => {
  if (process.env.E2E_KEEP === "1") return;
  // Objects first: while the operator is there, it takes off their finalizers.
  await cluster.run(["delete", "namespace", shop, "--ignore-not-found", "--timeout=90s"]);
  // Its objects without a namespace would stay.
  await cluster.helm(["uninstall", RELEASE, "-n", namespace, "--ignore-not-found"]).catch(() => undefined);
  await cluster.run(["delete", "namespace", namespace, "--ignore-not-found", "--timeout=90s"]);
  // They stay, and belong to this release: the next one could not be installed.
  await cluster.run(["delete", "--ignore-not-found", "--timeout=90s", ...(await ourCrds(cluster))]);
});

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
  test("helm install starts two api-servers and two operators", async () => {
    await install(place, settings.previous ?? present(settings));
    for (const component of ["api-server", "operator"]) {
      const pods = await podsOf(component);
      expect(pods.length, component).toBe(2);
      expect(pods.map(({ status }) => status.containerStatuses[0].ready)).toEqual([true, true]);
    }
  });

  test("all installed pods satisfy the restricted Pod Security standard", async () => {
    const level = "pod-security.kubernetes.io/enforce=restricted";
    const said = await cluster.run(["label", "--dry-run=server", "--overwrite", "namespace", namespace, level]);
    expect(said).toMatchObject({ code: 0, stderr: "" });
  });

  test("operator root key differs from the bootstrap key", async () => {
    const secret = await cluster.get("secret", `${RELEASE}-operator-root-key`, namespace);
    expect(Object.keys(secret?.data)).toEqual(["rootKey"]);
  });
});

describe("first policy", () => {
  test("app that requests injection gets a gate, which is unready without a policy", async () => {
    await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: shop } });
    await cluster.apply(
      programs(shop),
      pod(shop, "client", image, ["node", "-e", "setInterval(() => {}, 1e6)"]),
      ...guardedApp({ namespace: shop, image, policy: "orders" }),
    );
    await cluster.kubectl(["-n", shop, "wait", "pod/client", "--for=condition=Ready", "--timeout=60s"]);
    const pods = await waitFor(
      "both pods to run",
      async () => {
        const found = await cluster.list("pods", shop, "app=orders");
        const areUp = found.filter(({ status }) => status.containerStatuses?.[0]?.state?.running !== undefined);
        return areUp.length === 2 ? areUp : undefined;
      },
      { deadlineMs: 60_000, everyMs: 500 },
    );
    for (const { spec, status } of pods) {
      expect(spec.initContainers.map(({ name }: { name: string }) => name)).toEqual(["postern-gate"]);
      // A Secret with a password is in no workload's namespace.
      expect(JSON.stringify(spec)).not.toMatch(/secretKeyRef|secretRef/);
      expect(status.initContainerStatuses[0].ready).toBe(false);
      expect(await ask(`http://${status.podIP}:19080/healthz`)).toBe(503);
    }
  });

  test("policy becomes Ready before its pods do", async () => {
    await cluster.apply(role(shop), policy(shop));
    await cluster.until("Ready", ORDERS, (object) => conditionOf(object, "Ready") === "True");
    await rolledOut("deploy/orders", shop);
    await cluster.until(
      "enforced by both pods",
      ORDERS,
      (object) => conditionOf(object, "Enforced") === "True" && object.status.dataPlane.current === 2,
    );
  });

  test("guarded app responds 401 without a key, 200 to a key with the role, and 403 to a key without the role", async () => {
    const grants =
      "api.*.create_key,api.*.read_api,api.*.update_key,api.*.read_key,api.*.verify_key,rbac.*.add_role_to_key";
    ({ rootKey } = await administer<{ rootKey: string }>(place, ["rootkey", "create", `--permissions=${grants}`]));
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

  test("ApiKey manifest stores a working key in a Secret and revokes it on deletion", async () => {
    await cluster.apply(...secretsRole(shop, { name: `${RELEASE}-operator`, namespace }), apiKey(shop));
    const ref = { kind: "apikeys", name: "orders", namespace: shop };
    await cluster.until("Ready", ref, (object) => conditionOf(object, "Ready") === "True", { deadlineMs: 120_000 });
    const secret = await cluster.get("secret", "orders-key", shop);
    const key = Buffer.from(secret?.data.key, "base64").toString();
    await untilAnswered(200, "/orders", { key, method: "POST" });
    await cluster.kubectl(["-n", shop, "delete", "apikey.postern.dev", "orders", "--timeout=60s"]);
    await untilAnswered(401, "/orders", { key, method: "POST" });
  });
});

describe("pods of other kinds", () => {
  test("interception Redirect blocks direct access to the app port", async () => {
    const till = { ...ORDERS, name: "till" };
    await cluster.apply(policy(shop, { name: "till", interception: "Redirect" }));
    await cluster.until("Ready", till, (object) => conditionOf(object, "Ready") === "True");
    await cluster.apply(...guardedApp({ namespace: shop, image, name: "till", replicas: 1 }));
    await rolledOut("deploy/till", shop);
    const [found] = await cluster.list("pods", shop, "app=till");
    for (const url of ["http://till/x", `http://${found?.status.podIP}:${APP_PORT}/x`]) {
      expect(await ask(url), url).toBe(401);
      expect(await ask(url.replace(/x$/, "healthz")), url).toBe(200);
    }
  });

  test("policy reports a selected pod without a gate", async () => {
    await cluster.apply(policy(shop, { name: "open" }));
    await cluster.apply(...guardedApp({ namespace: shop, image, name: "open", replicas: 1, guarded: false }));
    const open = { ...ORDERS, name: "open" };
    const isSaid = (object: KubeObject) =>
      conditionOf(object, "Enforced") === "False" && object.status.dataPlane?.unguarded === 1;
    const { status } = await cluster.until("not enforced", open, isSaid);
    const enforced = status.conditions.find(({ type }: { type: string }) => type === "Enforced");
    expect(enforced.reason).toBe("UnguardedPods");
    await cluster.kubectl(["-n", shop, "delete", "deploy/open", "service/open", "apikeypolicy/open"]);
  });

  test("guarded Job completes despite its gate", async () => {
    await cluster.apply(guardedJob(shop, image));
    await cluster.kubectl(["-n", shop, "wait", "job/batch", "--for=condition=Complete", "--timeout=120s"]);
    const [done] = await cluster.list("pods", shop, "app=batch");
    expect(done?.spec.initContainers[0].name).toBe("postern-gate");
    await cluster.kubectl(["-n", shop, "delete", "job", "batch"]);
  });
});

describe("changes", () => {
  const limited = () => Promise.all([ask("/orders", { key: keys.good, method: "POST" })]).then(([status]) => status);

  test("edited limit is enforced at every pod, and so is the original limit after it is restored", async () => {
    await cluster.apply(policy(shop, { limit: 1 }));
    await untilAnswered(429, "/orders", { key: keys.good, method: "POST" });
    await cluster.apply(policy(shop));
    await untilAnswered(200, "/orders", { key: keys.good, method: "POST" });
    expect(await limited()).toBe(200);
  });

  test("invalid policy is not Ready and the previous version stays active", async () => {
    const broken = policy(shop);
    const spec = { ...broken.spec, rules: [{ match: { methods: ["POST"] }, permissions: "orders.write AND (" }] };
    const said = await cluster.run(
      ["apply", "--server-side", "--force-conflicts", "-f", "-"],
      JSON.stringify({ ...broken, spec }),
    );
    // A webhook may refuse it; without one the status says what is wrong.
    if (said.code === 0) {
      await cluster.until("not Ready", ORDERS, (object) => conditionOf(object, "Ready") === "False");
    }
    expect(await ask("/orders", { key: keys.good, method: "POST" })).toBe(200);
    expect(await ask("/orders", { method: "POST" })).toBe(401);
    await cluster.apply(broken);
    await cluster.until("Ready again", ORDERS, (object) => conditionOf(object, "Ready") !== "False");
  });
});

describe("failures under traffic", () => {
  let load: Load;
  const post = { url: "http://orders/orders", method: "POST" } as const;
  const startTraffic = (name: string) =>
    startLoad(cluster, {
      namespace: shop,
      name,
      image,
      targets: [
        { name: "good", ...post, headers: { authorization: `Bearer ${keys.good}` }, expect: 200 },
        { name: "without a key", ...post, expect: 401 },
        { name: "lacking", ...post, headers: { authorization: `Bearer ${keys.lacking}` }, expect: 403 },
      ],
    });
  beforeAll(async () => {
    load = await startTraffic("load");
  });
  /** What was not as expected while `disturb` went on and for a hundred answers after it. */
  const badDuring = async (disturb: () => Promise<unknown>): Promise<string> => {
    const before = await load.counts();
    await disturb();
    await load.untilAnswered(100);
    return badOf(await load.counts(), before);
  };

  test("no request fails during three rollouts of the app", async () => {
    const bad = await badDuring(async () => {
      for (let round = 0; round < 3; round++) {
        await cluster.kubectl(["-n", shop, "rollout", "restart", "deploy/orders"]);
        await rolledOut("deploy/orders", shop);
      }
    });
    expect(bad).toBe("");
  });

  test("gates survive the loss of all operators, and new operators apply an edit", async () => {
    const bad = await badDuring(async () => {
      const all = ["-l", "app.kubernetes.io/component=operator"];
      await cluster.kubectl(["-n", namespace, "delete", "pod", ...all, "--force", "--grace-period=0", "--wait=false"]);
      const edited = policy(shop, { limit: 900_000 });
      await cluster.apply(edited);
      await rolledOut(`deploy/${RELEASE}-operator`, namespace);
      await cluster.until("Ready", ORDERS, (object) => conditionOf(object, "Ready") === "True", {
        deadlineMs: 120_000,
      });
    });
    expect(bad).toBe("");
  });

  test("gates survive the loss of all api-servers and accept keys created afterwards", async () => {
    const bad = await badDuring(async () => {
      const all = ["-l", "app.kubernetes.io/component=api-server"];
      await cluster.kubectl(["-n", namespace, "delete", "pod", ...all, "--force", "--grace-period=0", "--wait=false"]);
      await rolledOut(`deploy/${RELEASE}-api-server`, namespace);
      await makesKeyThatWorks();
    });
    expect(bad).toBe("");
  });

  test("gates survive a Redis restart with data loss, and all data returns", async () => {
    const bad = await badDuring(async () => {
      await restartContainer("dev-redis", ["redis-cli", "-a", "postern", "shutdown", "nosave"]);
      await makesKeyThatWorks();
    });
    expect(bad).toBe("");
  });

  test("gates survive a Postgres crash, and keys can be created afterwards", async () => {
    const bad = await badDuring(async () => {
      await restartContainer("dev-postgres", ["sh", "-c", "kill -QUIT 1"]);
      await makesKeyThatWorks();
    });
    expect(bad).toBe("");
  });

  test("no request fails during a chart upgrade and a rollback", async () => {
    const bad = await badDuring(async () => {
      // Another annotation of the pods replaces all of them also when the images are the same.
      const replaced = (at: string) => ({
        "apiServer.podAnnotations.replaced": at,
        "operator.podAnnotations.replaced": at,
      });
      await install(place, present(settings), replaced("first"));
      await cluster.helm(["rollback", RELEASE, "-n", namespace, "--wait", "--timeout", "8m"]);
      await makesKeyThatWorks();
      await install(place, present(settings), replaced("second"));
    });
    expect(bad).toBe("");
  });

  test("guarded pods are still admitted during a chart upgrade that replaces every object", async () => {
    const bad = await badDuring(async () => {
      await cluster.helm(["upgrade", RELEASE, "charts/postern", "-n", namespace, "--reuse-values", "--force"]);
      await cluster.kubectl(["-n", shop, "rollout", "restart", "deploy/orders"]);
      await rolledOut("deploy/orders", shop);
    });
    expect(bad).toBe("");
  });

  test("no request without a key is admitted when a gate pod is killed", async () => {
    const [victim] = await cluster.list("pods", shop, "app=orders");
    const name = victim?.metadata.name ?? "";
    await cluster.kubectl(["-n", shop, "delete", "pod", name, "--force", "--grace-period=0", "--wait=false"]);
    await rolledOut("deploy/orders", shop);
    const counts = await load.untilAnswered(100);
    expect(counts["without a key"]?.responses["200"]).toBeUndefined();
    expect(await badDuring(async () => undefined)).toBe("");
    await load.stop();
  });
});

describe("uninstall", () => {
  test("deleted and reapplied policy guards the app and accepts its former keys", async () => {
    await cluster.kubectl(["-n", shop, "delete", "apikeypolicy", "orders", "--timeout=60s"]);
    await cluster.apply(policy(shop));
    await cluster.until("Ready", ORDERS, (object) => conditionOf(object, "Ready") === "True", { deadlineMs: 120_000 });
    apiId = await apiOf("orders");
    await makesKeyThatWorks();
    expect(await ask("/orders", { method: "POST" })).toBe(401);
  });

  test("helm uninstall leaves only the CRDs and their objects", async () => {
    await cluster.kubectl(["delete", "namespace", shop, "--timeout=120s"]);
    await cluster.helm(["uninstall", RELEASE, "-n", namespace, "--wait", "--timeout", "3m"]);
    const labelled = ["-A", "-l", `app.kubernetes.io/instance=${RELEASE}`, "-o", "name"];
    expect(await cluster.get("lease", "postern-operator", namespace)).toBeUndefined();
    const kinds = "deployments,jobs,services,secrets,configmaps,serviceaccounts,roles.rbac.authorization.k8s.io";
    const more = "rolebindings,poddisruptionbudgets,networkpolicies,clusterroles,clusterrolebindings";
    const webhooks = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
    expect(await cluster.kubectl(["get", `${kinds},${more},${webhooks}`, ...labelled])).toBe("");
    await waitFor("its pods to end", async () => (await cluster.kubectl(["get", "pods", ...labelled])) === "", {
      deadlineMs: 60_000,
      everyMs: 500,
    });
    expect((await ourCrds(cluster)).map((name) => name.replace(/^.*\//, ""))).toContain("apikeypolicies.postern.dev");
  });
});

/** Creates a key and waits until the gates accept it: the whole way is there again, from the API to the pods. */
async function makesKeyThatWorks(): Promise<void> {
  const body = { apiId, roles: ["orders.editor"] };
  const { key } = await waitFor("a key to be made", () => call<{ key: string }>("keys.createKey", body), {
    deadlineMs: 120_000,
    everyMs: 1000,
  });
  await waitFor("the key to be known", async () => (await ask("/orders", { key, method: "POST" })) === 200, {
    deadlineMs: 60_000,
    everyMs: 500,
  });
}

/** Ends the container of a part, which then is started again in its pod. */
async function restartContainer(component: string, command: readonly string[]): Promise<void> {
  const restarts = async () => {
    const [found] = await podsOf(component);
    const status = found?.status.containerStatuses?.[0];
    return status === undefined ? undefined : { count: status.restartCount as number, ready: status.ready as boolean };
  };
  const before = await restarts();
  await cluster.run(["-n", namespace, "exec", `deploy/${RELEASE}-${component}`, "--", ...command]);
  await waitFor(
    `${component} to be restarted`,
    async () => {
      const now = await restarts();
      return now?.ready === true && now.count > (before?.count ?? 0);
    },
    { deadlineMs: 120_000, everyMs: 500 },
  );
}

/** The API that a policy's keys belong to. */
async function apiOf(name: string): Promise<string> {
  const object = await cluster.until("stored", { ...ORDERS, name }, ({ status }) => status?.policyId !== undefined);
  const stored = await call<{ policy: { apiId: string } }>("policies.getPolicy", { policyId: object.status.policyId });
  return stored.policy.apiId;
}
