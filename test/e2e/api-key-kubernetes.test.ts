import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { KINDS } from "../../core/manifests/index.ts";
import { kubeconfigWith } from "../harness/kubeconfig.ts";
import { createTestNamespace, KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import {
  conditionOf,
  openKubernetesWorld,
  operatorOf,
  resourceOf,
  type Status,
  type TestManifest,
  untilDisconnected,
  untilReason,
} from "./operator-world.ts";

/* ApiKeys on a real Kubernetes API: Secrets, their ownership and permissions. */

let world: Awaited<ReturnType<typeof openKubernetesWorld>>;
beforeAll(async () => {
  world = await openKubernetesWorld();
  await world.apply(policy("orders"));
}, KUBERNETES_START_MS);
afterAll(() => world?.close());

const sourceOf = ({ kubernetes, namespace, other }: typeof world) =>
  ({ kind: "kubernetes", kubeconfig: kubernetes.kubeconfigPath, namespaces: [namespace, other] }) as const;
const policy = (name: string): TestManifest => ({
  kind: "ApiKeyPolicy",
  metadata: { name, namespace: world.namespace },
  spec: { api: { name: `${name}-api` }, target: { port: 80 } },
});
const apiKey = (name: string, spec: Record<string, unknown> = {}, namespace = world.namespace): TestManifest => ({
  kind: "ApiKey",
  metadata: { name, namespace },
  spec: { policyRef: { name: "orders" }, secretRef: { name: `${name}-key` }, ...spec },
});
const kubectl = (...args: string[]) => world.kubernetes.kubectl(["-n", world.namespace, ...args]);

interface Secret {
  readonly type: string;
  readonly metadata: {
    readonly annotations: Record<string, string>;
    readonly ownerReferences: ReadonlyArray<Record<string, unknown>>;
  };
  readonly data: Readonly<Record<string, string>>;
}
async function secretOf(name: string): Promise<Secret | undefined> {
  const { stdout } = await kubectl("get", "secret", `${name}-key`, "-o", "json", "--ignore-not-found");
  return stdout === "" ? undefined : (JSON.parse(stdout) as Secret);
}
const textIn = (secret: Secret | undefined, member = "key") =>
  Buffer.from(secret?.data[member] ?? "", "base64").toString();
const verify = async (key: string) => (await world.call("keys.verifyKey", { key })).data;
const keysOf = (name: string) => world.keysOf(`test/ApiKey/${world.namespace}/${name}`);
/** Makes the operator reconcile the object now instead of at its next resync. */
const nudge = (name: string) =>
  kubectl("annotate", resourceOf("ApiKey"), name, `test/nudge=${crypto.randomUUID()}`, "--overwrite");

test("ApiKey stores its key in a Secret and nowhere else", async () => {
  const one = apiKey("billing", { owner: "acme", secretRef: { name: "billing-key", key: "token" } });
  await world.apply(one);
  const status = await untilReason(world, one, "Succeeded");
  const secret = await secretOf("billing");
  const object = JSON.parse((await kubectl("get", "ak", "billing", "-o", "json")).stdout) as {
    metadata: { uid: string };
  };
  expect(secret).toMatchObject({
    type: "postern.dev/api-key",
    metadata: {
      annotations: { "postern.dev/key-id": status.keyId },
      ownerReferences: [{ kind: "ApiKey", name: "billing", uid: object.metadata.uid, controller: true }],
    },
  });
  expect(Object.keys(secret?.data ?? {})).toEqual(["token"]);
  const key = textIn(secret, "token");
  expect(await verify(key)).toMatchObject({ valid: true, keyId: status.keyId, identity: { externalId: "acme" } });

  const events = await waitFor("the Event", async () => {
    const { stdout } = await kubectl("get", "events.events.k8s.io", "-o", "json");
    return stdout.includes("KeyIssued") ? stdout : undefined;
  });
  expect(events).toContain(String(status.keyId));
  for (const text of [events, JSON.stringify(object), JSON.stringify(secret?.metadata)])
    expect(text).not.toContain(key);
  expect((await kubectl("get", "ak")).stdout).toMatch(/billing +True +Succeeded +billing-key +acme/);
});

test("deleted ApiKey Secret is recreated with another key, and the old key expires", async () => {
  const one = apiKey("deleted", { rotation: { overlap: "0s" } });
  await world.apply(one);
  const { keyId } = await untilReason(world, one, "Succeeded");
  const first = textIn(await secretOf("deleted"));
  await kubectl("delete", "secret", "deleted-key");
  await nudge("deleted");
  const secret = await waitFor("another Secret", async () => {
    const found = await secretOf("deleted");
    const status: Status | undefined = await world.status(one);
    return found !== undefined && status?.keyId !== keyId ? found : undefined;
  });
  const second = textIn(secret);
  expect(second).not.toBe(first);
  expect((await verify(second)).valid).toBe(true);
  expect((await verify(first)).valid).toBe(false);
});

test("deleted ApiKey Secret is detected within seconds without watch permission", async () => {
  const [one, other] = [apiKey("missed"), apiKey("kept")];
  await world.apply(one);
  await world.apply(other);
  const { keyId } = await untilReason(world, one, "Succeeded");
  const { keyId: keptId } = await untilReason(world, other, "Succeeded");
  await world.operator.close();
  const slow = await operatorOf(world, sourceOf(world), { resyncMs: 3_600_000 });
  onTestFinished(async () => {
    await slow.close();
    world = { ...world, operator: await operatorOf(world, sourceOf(world)) };
  });
  await slow.ready();
  await kubectl("delete", "secret", "missed-key");
  const status = await waitFor(
    "another key",
    async () => {
      const now: Status | undefined = await world.status(one);
      return now?.keyId !== keyId && conditionOf(now, "Ready")?.status === "True" ? now : undefined;
    },
    { deadlineMs: 30_000 },
  );
  expect((await secretOf("missed"))?.metadata.annotations["postern.dev/key-id"]).toBe(status.keyId);
  expect((await world.status(other))?.keyId).toBe(keptId);
}, 60_000);

test("foreign Secret is never changed by an ApiKey", async () => {
  await kubectl("create", "secret", "generic", "foreign-key", "--from-literal=key=theirs");
  const one = apiKey("foreign");
  await world.apply(one);
  const status = await untilReason(world, one, "SecretNotOwned");
  expect(conditionOf(status, "Stalled")?.message).toContain("foreign-key");
  expect(textIn(await secretOf("foreign"))).toBe("theirs");
  expect(await keysOf("foreign")).toEqual([]);

  // A Secret with that label but another type is also foreign, because the type of a Secret is immutable.
  const uid = (await kubectl("get", "ak", "foreign", "-o", "jsonpath={.metadata.uid}")).stdout;
  const owner = { apiVersion: "postern.dev/v1alpha1", kind: "ApiKey", name: "foreign", uid, controller: true };
  const patch = JSON.stringify({ metadata: { ownerReferences: [owner] } });
  expect(await kubectl("patch", "secret", "foreign-key", "--type=merge", "-p", patch)).toMatchObject({ exitCode: 0 });
  await nudge("foreign");
  await waitFor("the refusal of its type", async () => {
    return conditionOf(await world.status(one), "Stalled")?.message.includes("immutable");
  });
  expect(textIn(await secretOf("foreign"))).toBe("theirs");
  expect(await keysOf("foreign")).toEqual([]);

  await kubectl("delete", "secret", "foreign-key");
  await nudge("foreign");
  await untilReason(world, one, "Succeeded");
});

test("deleting an ApiKey revokes its keys", async () => {
  const one = apiKey("gone");
  await world.apply(one);
  await untilReason(world, one, "Succeeded");
  const key = textIn(await secretOf("gone"));
  await world.remove(one);
  await untilDisconnected(world, one);
  expect(await verify(key)).toMatchObject({ valid: false, code: "NOT_FOUND" });
});

describe("kubectl apply is rejected", () => {
  const change = async (spec: Record<string, unknown>) => {
    const one = apiKey("fixed", spec);
    return await world.kubernetes.kubectl(
      ["apply", "-f", "-"],
      JSON.stringify({ apiVersion: "postern.dev/v1alpha1", ...one }),
    );
  };
  test.each([
    { name: "another Secret", spec: { secretRef: { name: "elsewhere" } }, says: /cannot move to another Secret/ },
    { name: "another policy", spec: { policyRef: { name: "other" } }, says: /cannot move to another API/ },
  ])("kubectl apply rejects $name for an existing ApiKey", async ({ spec, says }) => {
    await world.apply(apiKey("fixed"));
    expect((await change(spec)).stderr).toMatch(says);
  });
});

test("ApiKey reports that the operator lacks permissions on Secrets, and creates no key", async () => {
  const { kubernetes } = world;
  const own = await createTestNamespace(kubernetes);
  onTestFinished(own.drop);
  const admin = (...args: string[]) => kubernetes.kubectl(["-n", own.name, ...args]);
  const user = `system:serviceaccount:${own.name}:operator`;
  await admin("create", "serviceaccount", "operator");
  const grant = async (name: string, verbs: string, resources: string) => {
    await admin("create", "role", name, `--verb=${verbs}`, `--resource=${resources}`);
    await admin("create", "rolebinding", name, `--role=${name}`, `--serviceaccount=${own.name}:operator`);
  };
  const kinds = KINDS.map(({ plural }) => `${plural}.postern.dev,${plural}.postern.dev/status`).join(",");
  await grant("manifests", "list,watch,patch", kinds);
  await grant("events", "create", "events.events.k8s.io");
  const token = (await admin("create", "token", "operator")).stdout.trim();
  const operator = await operatorOf(
    world,
    {
      kind: "kubernetes",
      kubeconfig: await kubeconfigWith(world.kubernetes, { user: { token }, replacesUser: true }),
      namespaces: [own.name],
    },
    { cluster: "limited" },
  );
  onTestFinished(() => operator.close());

  const inOwn = (one: TestManifest): TestManifest => ({ ...one, metadata: { ...one.metadata, namespace: own.name } });
  const one = inOwn(apiKey("limited"));
  await world.apply(inOwn(policy("orders")));
  await world.apply(one);
  const until = async (says: string) => {
    await waitFor(`a status with ${says}`, async () => {
      await admin("annotate", resourceOf("ApiKey"), "limited", `test/nudge=${crypto.randomUUID()}`, "--overwrite");
      const ready = conditionOf(await world.status(one), "Ready");
      return ready?.reason === "Forbidden" && ready.message.includes(says);
    });
    expect(await world.keysOf(`limited/ApiKey/${own.name}/limited`)).toEqual([]);
  };
  await until(`User "${user}" cannot get resource "secrets"`);
  await grant("secrets-get", "get", "secrets");
  await until(`User "${user}" cannot create resource "secrets"`);
  await grant("secrets-write", "create,patch", "secrets");
  await admin("annotate", resourceOf("ApiKey"), "limited", "test/nudge=last", "--overwrite");
  await untilReason(world, one, "Succeeded");
  expect(await world.keysOf(`limited/ApiKey/${own.name}/limited`)).toHaveLength(1);
});
