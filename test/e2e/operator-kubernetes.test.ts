import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { kubeconfigWith } from "../harness/kubeconfig.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  type KubectlResult,
  startOwnKubernetes,
} from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import {
  applyCrds,
  conditionOf,
  openKubernetesWorld,
  openStore,
  operatorOf,
  resourceOf,
  type Status,
  type TestManifest,
  toJson,
  untilDisconnected,
  untilReason,
} from "./operator-world.ts";

/* Properties of a real Kubernetes API: validation, Events, waits, Leases and failures. */

let world: Awaited<ReturnType<typeof openKubernetesWorld>>;
beforeAll(async () => {
  world = await openKubernetesWorld();
}, KUBERNETES_START_MS);
afterAll(() => world?.close());

const manifest = (kind: string, name: string, spec: Record<string, unknown>): TestManifest => ({
  kind,
  metadata: { name, namespace: world.namespace },
  spec,
});
const role = (name: string, spec: Record<string, unknown> = {}) => manifest("Role", name, { name, ...spec });
const policy = (name: string, spec: Record<string, unknown> = {}) =>
  manifest("ApiKeyPolicy", name, { api: { name: `${name}-api` }, target: { port: "http" }, ...spec });
const kubectl = (...args: string[]): Promise<KubectlResult> =>
  world.kubernetes.kubectl(["-n", world.namespace, ...args]);
/** Returns a copy of the kubeconfig with that namespace, which contains the Lease of the operators. */
const kubeconfigIn = (namespace: string): Promise<string> => kubeconfigWith(world.kubernetes, { namespace });

const tryApply = (one: TestManifest) => world.kubernetes.kubectl(["apply", "-f", "-"], toJson(one));

describe("the API server rejects", () => {
  const override = (spec: Record<string, unknown>) =>
    manifest("RatelimitOverride", "refused", {
      namespaceRef: { name: "any" },
      identifier: "acme",
      limit: 1,
      duration: "60s",
      ...spec,
    });
  const rule = { match: { path: { prefix: "/" } } };

  test.each([
    { name: "a wrong type", one: () => role("refused", { permissions: "a" }), says: /must be of type array/ },
    { name: "a missing field", one: () => manifest("Role", "refused", {}), says: /spec\.name: Required value/ },
    {
      name: "an unknown field",
      one: () => role("refused", { premissions: [] }),
      says: /unknown field "spec\.premissions"/,
    },
    {
      name: "an unknown field deep in a rule",
      one: () => policy("refused", { rules: [{ acess: "Key" }] }),
      says: /unknown field "spec\.rules\[0\]\.acess"/,
    },
    { name: "a permission with a blank", one: () => role("refused", { permissions: ["a b"] }), says: /should match/ },
    {
      name: "a duration that is too short",
      one: () => override({ duration: "10ms" }),
      says: /must be at least 1000 ms/,
    },
    {
      name: "a duration in milliseconds that is too short",
      one: () => override({ duration: 10 }),
      says: /must be at least 1000 ms/,
    },
    { name: "a duration without a unit", one: () => override({ duration: "60" }), says: /should match/ },
    {
      name: "both of two fields that exclude each other",
      one: () => policy("refused", { api: { name: "both", id: "api_12345678" } }),
      says: /exactly one of name and id/,
    },
    { name: "neither of them", one: () => policy("refused", { api: {} }), says: /exactly one of name and id/ },
    {
      name: "an Anonymous rule that asks for a permission",
      one: () => policy("refused", { rules: [{ access: "Anonymous", permissions: "a" }] }),
      says: /only a rule with access Key can require/,
    },
    {
      name: "a policy of a thousand rules",
      one: () => policy("refused", { rules: Array.from({ length: 1000 }, () => rule) }),
      says: /must have at most 256 items/,
    },
  ])("Kubernetes rejects $name with a helpful message", async ({ one, says }) => {
    const { exitCode, stderr } = await tryApply(one());
    expect(stderr).toMatch(says);
    expect(exitCode).toBe(1);
    expect(await world.status(one())).toBeUndefined();
  });

  test("Kubernetes rejects a change of an immutable field", async () => {
    const named = (name: string) => manifest("RatelimitNamespace", "fixed", { name });
    await world.apply(named("fixed"));
    expect((await tryApply(named("other"))).stderr).toContain("a rate-limit namespace cannot be renamed");
  });
});

test("largest policy of the schema is accepted by Kubernetes and becomes Ready", async () => {
  const rules = Array.from({ length: 256 }, (_, i) => ({
    match: { methods: ["GET"], path: { prefix: `/p${i}` } },
    ratelimits: [{ name: `limit${i}`, limit: 1, duration: 60_000 }],
  }));
  await world.apply(policy("largest", { rules }));
  await untilReason(world, policy("largest"), "Succeeded");
});

test("object has a condition from creation on, even without an operator", async () => {
  const unwatched = await createTestNamespace(world.kubernetes);
  onTestFinished(unwatched.drop);
  const one = { ...policy("unseen"), metadata: { name: "unseen", namespace: unwatched.name } };
  // Created as by kubectl: the API server's response is what the first reader gets.
  const created = await world.kubernetes.kubectl(["create", "-f", "-", "-o", "json"], toJson(one));
  expect((JSON.parse(created.stdout) as { status?: Status }).status?.conditions).toEqual([
    expect.objectContaining({ type: "Ready", status: "Unknown", reason: "Pending" }),
  ]);
  const listed = await world.kubernetes.kubectl(["-n", unwatched.name, "get", "akp"]);
  expect(listed.stdout).toMatch(/unseen +Unknown +Pending/);
});

test("first operator status replaces the default status", async () => {
  await world.apply(role("first"));
  const { conditions } = await untilReason(world, role("first"), "Succeeded");
  expect(conditions?.map(({ type }) => type)).toEqual(["Ready"]);
  expect(Date.parse(conditions?.[0]?.lastTransitionTime ?? "")).toBeGreaterThan(Date.now() - 60_000);
});

test("kubectl wait and kubectl get postern work with Postern objects", async () => {
  await world.apply(role("waited"));
  const waited = await kubectl("wait", "--for=condition=Ready", "--timeout=20s", `${resourceOf("Role")}/waited`);
  expect(waited).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("condition met") });
  const { stdout } = await kubectl("get", "postern");
  expect(stdout).toMatch(/NAME +READY +REASON +STORED-AS +AGE/);
  expect(stdout).toMatch(/role\.postern\.dev\/waited +True +Succeeded +waited/);
  expect((await kubectl("get", "keyrole", "--field-selector", "spec.name=waited", "-o", "name")).stdout.trim()).toBe(
    "role.postern.dev/waited",
  );
});

test("kubectl columns show enforcement, message and durations", async () => {
  await world.apply(policy("shown"));
  await untilReason(world, policy("shown"), "Succeeded");
  const { stdout } = await kubectl("get", "akp", "shown", "-o", "wide");
  expect(stdout).toMatch(
    /NAME +READY +REASON +ENFORCED +STALE +OVER-ADMITTED-PERCENT +MODE +PODS +UPDATED +API +POLICY +AGE +MESSAGE/,
  );
  expect(stdout).toMatch(/shown +True +Succeeded +False +False +Enforce .* The policy is stored as pol_/);
  const narrow = await kubectl("get", "akp", "shown");
  expect(narrow.stdout).toMatch(/NAME +READY +REASON +ENFORCED +MODE +PODS +UPDATED +AGE\n/);
  for (const name of ["keyrole", "keyroles"]) expect(await kubectl("get", name)).toMatchObject({ exitCode: 0 });
  const explained = await kubectl("explain", "akp.spec.onStale.after");
  expect(explained.stdout.replaceAll(/\s+/g, " ")).toContain("A duration such as 500ms, 60s or 1h30m");
});

test("each transition and each drift emits one Event", async () => {
  await world.apply(role("told", { permissions: ["kept"] }));
  const { roleId } = await untilReason(world, role("told"), "Succeeded");
  const manager = { "Postern-Manager": `test/Role/${world.namespace}/told` };
  await world.call("permissions.setRolePermissions", { roleId, permissions: [] }, manager);
  const events = await waitFor("the Event of the drift", async () => {
    const found = await eventsOf("told");
    return found.some(({ reason }) => reason === "DriftCorrected") ? found : undefined;
  });
  expect(events.map(({ reason }) => reason)).toEqual(["Succeeded", "DriftCorrected"]);
  expect(events[1]).toMatchObject({ type: "Warning", note: expect.stringContaining("permissions") });
});

async function eventsOf(name: string): Promise<Array<{ reason: string; type: string; note: string }>> {
  const { stdout } = await kubectl("get", "events.events.k8s.io", "-o", "json");
  const { items } = JSON.parse(stdout) as {
    items: Array<{ reason: string; type: string; note: string; eventTime: string; regarding: { name: string } }>;
  };
  return items.filter(({ regarding }) => regarding.name === name).sort((a, b) => (a.eventTime < b.eventTime ? -1 : 1));
}

test("reconciling an unchanged object writes nothing", async () => {
  const resting = [policy("resting"), role("resting")];
  for (const one of resting) await world.apply(one);
  for (const one of resting) await untilReason(world, one, "Succeeded");
  const versions = () =>
    Promise.all(
      resting.map(async ({ kind }) => {
        const { stdout } = await kubectl("get", resourceOf(kind), "resting", "-o", "json");
        return (JSON.parse(stdout) as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
      }),
    );
  const before = await versions();
  // A resync is only observable by its correction of drift.
  const { db } = world.server.deps;
  for (const description of ["first", "second"]) {
    await db.query("update roles set description = $1 where name = 'resting'", [description]);
    await waitFor("a resync", async () => {
      const { rows } = await db.query<{ description: string }>("select description from roles where name = 'resting'");
      return rows[0]?.description !== description;
    });
  }
  expect(await versions()).toEqual(before);
});

test("manifest deleted and recreated quickly gets a new stored object", async () => {
  await world.apply(role("reborn"));
  const { roleId } = await untilReason(world, role("reborn"), "Succeeded");
  await kubectl("delete", resourceOf("Role"), "reborn", "--wait=true", "--timeout=20s");
  await world.apply(role("reborn"));
  expect((await untilReason(world, role("reborn"), "Succeeded")).roleId).not.toBe(roleId);
});

test("status that another client changed or emptied is rewritten", async () => {
  await world.apply(role("broken-status"));
  const { roleId } = await untilReason(world, role("broken-status"), "Succeeded");
  const patch = ["--subresource=status", "--type=merge", "-p", '{"status":{"roleId":null,"conditions":null}}'];
  expect(await kubectl("patch", resourceOf("Role"), "broken-status", ...patch)).toMatchObject({ exitCode: 0 });
  expect((await untilReason(world, role("broken-status"), "Succeeded")).roleId).toBe(roleId);
});

test("permission to write statuses in one namespace cannot affect another namespace", async () => {
  const inOther = (kind: string, name: string, spec: Record<string, unknown>): TestManifest => ({
    kind,
    metadata: { name, namespace: world.other },
    spec,
  });
  // The victim's stored rate limit namespace with an override.
  const theirs = manifest("RatelimitNamespace", "theirs", { name: "theirs" });
  await world.apply(theirs);
  const { namespaceId } = await untilReason(world, theirs, "Succeeded");

  // A user with write access, including statuses, to the other namespace only, enforced by RBAC.
  const user = "mallory";
  const as = (...args: string[]) => world.kubernetes.kubectl(["--as", user, "-n", world.other, ...args]);
  const grant = ["--verb=*", "--resource=ratelimitnamespaces.postern.dev,ratelimitnamespaces.postern.dev/status"];
  const inNamespace = ["-n", world.other];
  await world.kubernetes.kubectl([...inNamespace, "create", "role", user, ...grant]);
  await world.kubernetes.kubectl([...inNamespace, "create", "rolebinding", user, `--role=${user}`, `--user=${user}`]);

  const own = inOther("RatelimitNamespace", "own", { name: "own" });
  await world.apply(own);
  const { namespaceId: ownId } = await untilReason(world, own, "Succeeded");
  const forged = JSON.stringify({ status: { namespaceId } });
  const patch = [
    "patch",
    resourceOf("RatelimitNamespace"),
    "own",
    "--subresource=status",
    "--type=merge",
    "-p",
    forged,
  ];
  // Checks the response, because the operator may rewrite the status at any time.
  expect(await as(...patch, "-o", "jsonpath={.status.namespaceId}")).toMatchObject({
    exitCode: 0,
    stdout: namespaceId,
  });
  expect((await world.kubernetes.kubectl(["--as", user, "-n", world.namespace, ...patch])).stderr).toMatch(
    /forbidden/i,
  );

  const override = inOther("RatelimitOverride", "everything", {
    namespaceRef: { name: "own" },
    identifier: "*",
    limit: 0,
    duration: "1h",
  });
  await world.apply(override);
  expect((await untilReason(world, override, "Succeeded")).namespaceId).toBe(ownId);
  expect((await world.call("ratelimit.listOverrides", { namespace: namespaceId })).data).toEqual([]);
  await waitFor("the status to be the operator's word again", async () => {
    return (await world.status(own))?.namespaceId === ownId;
  });
});

test("unreachable API keeps Ready objects Ready, and new objects report the failure and recover", async () => {
  const own = await startOwnKubernetes();
  const store = await openStore();
  const there = (name: string): TestManifest => ({ ...role(name), metadata: { name, namespace: "default" } });
  const apply = (one: TestManifest) => own.kubectl(["apply", "-f", "-"], toJson(one));
  const status = async ({ kind, metadata }: Pick<TestManifest, "kind" | "metadata">): Promise<Status> => {
    const { stdout } = await own.kubectl(["get", resourceOf(kind), metadata.name, "-o", "json"]);
    return (JSON.parse(stdout) as { status?: Status }).status ?? {};
  };
  await applyCrds(own);
  const operator = await operatorOf(store, { kind: "kubernetes", kubeconfig: own.kubeconfigPath });
  let closeAgain: (() => Promise<void>) | undefined;
  try {
    await apply(there("old"));
    await untilReason({ status }, there("old"), "Succeeded");
    await store.server.close();
    await apply(there("new"));
    const waiting = await untilReason({ status }, there("new"), "ApiUnavailable");
    expect(conditionOf(waiting, "Reconciling")).toMatchObject({ status: "True" });
    const kept = await waitFor("the old one to tell", async () => {
      const now = await status(there("old"));
      return conditionOf(now, "Reconciling") === undefined ? undefined : now;
    });
    expect(conditionOf(kept, "Ready")).toMatchObject({ status: "True", reason: "Succeeded" });

    // The Kubernetes API also restarts: the watch resumes from its position.
    await own.restartApiServer();
    await apply(there("newer"));
    closeAgain = await store.reopen(Number(new URL(store.server.url).port));
    for (const name of ["old", "new", "newer"]) await untilReason({ status }, there(name), "Succeeded");
    const isAtRest = async () => conditionOf(await status(there("old")), "Reconciling") === undefined;
    await waitFor("the old one to be at rest", isAtRest);
  } finally {
    await operator.close();
    await closeAgain?.();
    await store.close();
    await own.stop();
  }
}, 180_000);

test("object with the abandon annotation is released without the API", async () => {
  const one: TestManifest = { ...role("abandoned"), metadata: { name: "abandoned", namespace: world.namespace } };
  await world.apply(one);
  await untilReason(world, one, "Succeeded");
  await kubectl("annotate", resourceOf("Role"), "abandoned", "postern.dev/abandon=true");
  await world.remove(one);
  await untilDisconnected(world, one);
  expect(await world.call("permissions.getRole", { role: "abandoned" })).toMatchObject({ status: 200 });
});

test("second operator takes over immediately when the active one stops", async () => {
  const store = await openStore();
  const kubeconfig = await kubeconfigIn(world.namespace);
  const source = { kind: "kubernetes", kubeconfig, namespaces: [world.other] } as const;
  const start = () =>
    operatorOf(store, source, {
      cluster: "elected",
      lease: { name: "postern-operator" },
      admin: { host: "127.0.0.1", port: 0 },
    });
  const leads = async (operator: { adminUrl: string | undefined }) => {
    const metrics = await (await fetch(`${operator.adminUrl}/metrics`)).text();
    return /^postern_operator_leading 1$/m.test(metrics);
  };
  const first = await start();
  await waitFor("the first to lead", () => leads(first));
  const second = await start();
  try {
    expect((await fetch(`${second.adminUrl}/readyz`)).status).toBe(200);
    expect(await leads(second)).toBe(false);
    const closedAt = performance.now();
    await first.close();
    await waitFor("the second to lead", () => leads(second));
    // The Lease is released at exit, so the other operator need not wait for its expiry.
    expect(performance.now() - closedAt).toBeLessThan(10_000);
  } finally {
    await first.close();
    await second.close();
    await store.close();
  }
});

test("operator closed while opening watches ends without an unhandled error", async () => {
  const stray: unknown[] = [];
  const note = (error: unknown) => void stray.push(error);
  process.on("uncaughtExceptionMonitor", note);
  onTestFinished(() => void process.off("uncaughtExceptionMonitor", note));
  const kubeconfig = await kubeconfigIn(world.other);
  // About every third attempt crashed the process before each stream had an error listener.
  for (let time = 0; time < 12; time++) {
    const operator = await operatorOf(world, { kind: "kubernetes", kubeconfig, namespaces: [world.other] });
    await operator.close();
  }
  expect(stray).toEqual([]);
});
