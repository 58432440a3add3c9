import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { API_VERSION, KINDS, type Kind } from "../../core/manifests/index.ts";
import type { Operator } from "../../operator/start.ts";
import { render } from "../chart/render.ts";
import { KUBERNETES_START_MS, startOwnKubernetes } from "../harness/kubernetes.ts";
import { collectionOf, type KubernetesObjects, type ObjectName, openObjects } from "../harness/kubernetes-objects.ts";
import { waitFor } from "../harness/wait.ts";
import { applyCrds, conditionOf, openStore, operatorOf, type Status, type Store } from "./operator-world.ts";
import { runPod } from "./running-pods.ts";
import { openTeam, type Team } from "./teams.ts";

/*
 * Users with the chart's persona roles and those of Kubernetes, each in a separate namespace, on a real API server with authorization. One
 * has objects of every kind; one in the same workspace and one in another try every way to reach them. The operator is a cluster
 * administrator, so only its own decisions separate the teams.
 */

const ANN = { user: "ann", namespace: "ann-shop" };
/** In the same workspace as ann. */
const BOB = { user: "bob", namespace: "bob-shop" };
const CAROL = { user: "carol", namespace: "carol-shop" };
type User = typeof ANN;
const USERS = [ANN, BOB, CAROL];

let kubernetes: Awaited<ReturnType<typeof startOwnKubernetes>>;
let admin: KubernetesObjects;
/** Connections of the users by their name. */
let users: Readonly<Record<string, KubernetesObjects>>;
let store: Store;
let operator: Operator;
let teams: { readonly a: Team; readonly b: Team };
let dir: string;

beforeAll(async () => {
  kubernetes = await startOwnKubernetes();
  await applyCrds(kubernetes);
  store = await openStore();
  teams = { a: await openTeam(store, "team-a"), b: await openTeam(store, "team-b") };
  admin = await openObjects(kubernetes);
  users = Object.fromEntries(
    await Promise.all(USERS.map(async ({ user }) => [user, await openObjects(kubernetes, user)] as const)),
  );
  for (const [{ namespace }, workspace] of [
    [ANN, "team-a"],
    [BOB, "team-a"],
    [CAROL, "team-b"],
  ] as const) {
    await admin.create(namespaceOf(namespace, { labels: { "postern.dev/workspace": workspace } }));
  }
  await grantPersonas(USERS);
  dir = await mkdtemp(join(tmpdir(), "postern-tenants-"));
  await writeFile(join(dir, "team-a"), teams.a.operatorKey);
  await writeFile(join(dir, "team-b"), teams.b.operatorKey);
  const tenancy = `${dir}.yaml`;
  await writeFile(
    tenancy,
    stringify({ nameGrants: [{ names: ["ann.*"], namespaces: [ANN.namespace], workspace: "team-a" }] }),
  );
  operator = await operatorOf(
    store,
    { kind: "kubernetes", kubeconfig: kubernetes.kubeconfigPath },
    { keys: { rootKeysDir: dir }, tenancyFile: tenancy },
  );
}, KUBERNETES_START_MS);
afterAll(async () => {
  await operator?.close();
  await store?.close();
  for (const objects of [admin, ...Object.values(users ?? {})]) await objects?.close();
  await kubernetes?.stop();
  for (const path of dir === undefined ? [] : [dir, `${dir}.yaml`]) await rm(path, { recursive: true, force: true });
});

const as = ({ user }: User): KubernetesObjects => {
  const objects = users[user];
  if (objects === undefined) throw new Error(`there is no user ${user}`);
  return objects;
};
const namespaceOf = (name: string, metadata = {}) => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, ...metadata },
});

/**
 * Grants the permissions of `admin` in a namespace by separate bindings, because ClusterRoles are not aggregated here. Statuses are
 * included, because a user with that permission must not gain by it.
 */
async function grantPersonas(users: readonly User[]): Promise<void> {
  const objects = await render({ dev: { enabled: true }, operator: { clusterName: "test" } });
  const personas = objects.filter(
    ({ kind, metadata: { labels = {} } }) =>
      kind === "ClusterRole" && labels["rbac.authorization.k8s.io/aggregate-to-admin"] === "true",
  );
  expect(personas.length).toBeGreaterThan(1);
  for (const persona of personas) await admin.apply(persona);
  const roles = personas.map(({ metadata }) => metadata.name);
  for (const part of ["view", "edit", "admin"]) roles.push(`system:aggregate-to-${part}`);
  const apiGroup = "rbac.authorization.k8s.io";
  const apiVersion = `${apiGroup}/v1`;
  for (const one of users) {
    const { user, namespace } = one;
    const subjects = [{ apiGroup, kind: "User", name: user }];
    const bind = (name: string, kind: string, role: string) =>
      admin.create({
        ...{ apiVersion, kind: "RoleBinding", metadata: { name, namespace } },
        ...{ roleRef: { apiGroup, kind, name: role }, subjects },
      });
    for (const role of roles) await bind(`${user}-${role.replaceAll(":", "-")}`, "ClusterRole", role);
    await waitFor(`${user} to have rights`, () => mayPatchPolicies(one));
    expect(await mayPatchPolicies(one, "status")).toBe(false);
    const statuses = KINDS.map(({ plural }) => `${plural}/status`);
    await admin.create({
      ...{ apiVersion, kind: "Role", metadata: { name: "statuses", namespace } },
      rules: [{ apiGroups: ["postern.dev"], resources: statuses, verbs: ["get", "patch"] }],
    });
    await bind("statuses", "Role", "statuses");
    await waitFor(`${user} to have rights`, () => mayPatchPolicies(one, "status"));
  }
}

async function mayPatchPolicies(user: User, subresource?: string): Promise<boolean> {
  const { namespace } = user;
  const resource = { group: "postern.dev", resource: "apikeypolicies" };
  const { status } = await as(user).client.send<{ status: { allowed: boolean } }>({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: { spec: { resourceAttributes: { namespace, verb: "patch", ...resource, subresource } } },
  });
  return status.allowed;
}

interface Manifest {
  readonly kind: Kind;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly [field: string]: unknown };
  readonly spec: Record<string, unknown>;
}
const manifest = (
  { namespace }: User,
  kind: Kind,
  name: string,
  spec: Record<string, unknown>,
  metadata = {},
): Manifest => ({
  kind,
  metadata: { name, namespace, ...metadata },
  spec,
});
const apply = (user: User, one: Manifest) => as(user).create(one);
const secretOf = (name: string, { namespace }: User) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace },
});
const podOf = (name: string, { namespace }: User) => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace } });
const networkPolicyOf = (name: string, { namespace }: User) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name, namespace },
});
// biome-ignore lint/suspicious/noExplicitAny: tests reach into objects of any shape.
const get = (one: ObjectName): Promise<any> => admin.get(one);
const statusOf = async (one: Manifest): Promise<Status> => (await get(one))?.status ?? {};

async function until(one: Manifest, reason: string): Promise<Status> {
  let last: unknown;
  return await waitFor(
    `${one.kind} ${one.metadata.name} to be ${reason}`,
    async () => {
      const status = await statusOf(one);
      last = conditionOf(status, "Ready");
      return conditionOf(status, "Ready")?.reason === reason ? status : undefined;
    },
    { deadlineMs: 30_000 },
  ).catch((error: unknown) => {
    throw new Error(`the last was ${JSON.stringify(last)}`, { cause: error });
  });
}

/** Objects of ann: one of each kind, with a guarded pod. */
const HERS = {
  role: manifest(ANN, "Role", "editor", { name: "editor", permissions: ["orders.write"] }),
  limits: manifest(ANN, "RatelimitNamespace", "public", { name: "public" }),
  override: manifest(ANN, "RatelimitOverride", "acme", {
    ...{ namespaceRef: { name: "public" }, identifier: "acme", limit: 5, duration: "60s" },
  }),
  policy: manifest(ANN, "ApiKeyPolicy", "orders", {
    ...{ api: { name: "orders-api" }, target: { port: 8080 }, selector: { matchLabels: { app: "orders" } } },
    rules: [{ ratelimits: [{ namespace: "public", identifier: "Key", limit: 10, duration: "60s" }] }],
  }),
  key: manifest(ANN, "ApiKey", "billing", {
    policyRef: { name: "orders" },
    secretRef: { name: "billing-key" },
    roles: ["editor"],
  }),
};

/** Returns everything of ann in the cluster and the database, except times and versions of the API server. */
async function everythingOfAnn(): Promise<unknown> {
  const kinds = [
    ...KINDS.map(({ kind }) => ({ apiVersion: API_VERSION, kind })),
    ...[secretOf("", ANN), networkPolicyOf("", ANN), podOf("", ANN)],
  ];
  const items = (
    await Promise.all(
      kinds.map(async (one) => (await admin.list(one, ANN.namespace)).map((item) => ({ ...item, kind: one.kind }))),
    )
  ).flat();
  // biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
  const inCluster = items.map(({ metadata, kind, status, ...rest }: any) => {
    const { resourceVersion: _, managedFields: __, ...kept } = metadata;
    const conditions = status?.conditions?.map((one: { type: string; status: string; reason: string }) => [
      one.type,
      one.status,
      one.reason,
    ]);
    const { conditions: ___, ...ids } = status ?? {};
    return { kind, metadata: kept, ...rest, status: kind === "Pod" ? undefined : { ...ids, conditions } };
  });
  const { apiId, policyId } = await statusOf(HERS.policy);
  const { call } = teams.a;
  const data = async (procedure: string, body: object) => {
    const { status, data } = await call(procedure, body);
    if (status !== 200) throw new Error(`${procedure}: ${status}`);
    return data;
  };
  const { dataPlane: _, ...policy } = await data("policies.getPolicy", { policyId });
  const { namespaceId } = await statusOf(HERS.limits);
  const { roleId } = await statusOf(HERS.role);
  const ofObject = (kind: string, id: unknown) => data("managed.getObject", { kind, id });
  return {
    inCluster,
    policy,
    api: [await data("apis.getApi", { apiId }), await ofObject("api", apiId)],
    keys: await data("apis.listKeys", { apiId }),
    limits: [
      await ofObject("namespace", namespaceId),
      await data("ratelimit.listOverrides", { namespace: namespaceId }),
    ],
    role: [await ofObject("role", roleId), await data("permissions.getRole", { role: roleId })],
  };
}

let ids: Readonly<Record<"apiId" | "policyId" | "namespaceId" | "roleId" | "keyId", string>>;
let uids: Readonly<Record<keyof typeof HERS, string>>;
let before: unknown;

test("tenant ann keeps every object that ann created", async () => {
  for (const one of Object.values(HERS)) await apply(ANN, one);
  const options = {
    app: "orders",
    gate: true,
    labels: { "postern.dev/gated-by": "orders" },
    annotations: { "postern.dev/policy": "orders" },
  };
  await runPod({ objects: admin, namespace: ANN.namespace }, "orders-1", options);
  const statuses = await Promise.all(Object.values(HERS).map((one) => until(one, "Succeeded")));
  ids = Object.assign({}, ...statuses);
  await waitFor("the NetworkPolicy", async () =>
    conditionOf(await statusOf(HERS.policy), "Bypassable")?.status === "False" ? true : undefined,
  );
  const found = await Promise.all(
    Object.entries(HERS).map(async ([name, one]) => [name, (await get(one)).metadata.uid]),
  );
  uids = Object.fromEntries(found);
  before = await everythingOfAnn();
});

describe.each([
  { where: "in the same workspace", user: BOB, isTogether: true },
  { where: "in another workspace", user: CAROL, isTogether: false },
])("a user $where", ({ user, isTogether }) => {
  const own = (kind: Kind, name: string, spec: Record<string, unknown>, metadata = {}) =>
    manifest(user, kind, name, spec, metadata);
  const target = { port: 8080 };
  /** References to another workspace find nothing. */
  const refused = isTogether ? "NotAllowed" : "DependencyNotReady";

  test("other tenant has no permission in ann's namespace or on Namespaces", async () => {
    const mine = as(user);
    const label = (namespace: string, workspace: string | null) =>
      mine.patch(namespaceOf(namespace), { metadata: { labels: { "postern.dev/workspace": workspace } } });
    const tries: Array<() => Promise<unknown>> = [
      ...KINDS.flatMap((kind) => [
        () => mine.list(kind, ANN.namespace),
        () => mine.client.send({ method: "DELETE", path: collectionOf(kind, ANN.namespace) }),
      ]),
      ...Object.values(HERS).flatMap((one) => [() => mine.get(one), () => mine.remove(one)]),
      () => mine.patch(HERS.policy, { status: { apiId: "api_00000000" } }, "status"),
      () => mine.get(secretOf("billing-key", ANN)),
      () => mine.remove(networkPolicyOf("postern-orders", ANN)),
      () => mine.patch(podOf("orders-1", ANN), { metadata: { annotations: { "postern.dev/policy": "mine" } } }),
      () => label(user.namespace, "team-b"),
      () => label(user.namespace, "team-a"),
      () => label(ANN.namespace, null),
    ];
    for (const attempt of tries) {
      await expect(attempt(), String(attempt)).rejects.toMatchObject({ status: 403, reason: "Forbidden" });
    }
  });

  const claims = {
    policy: { api: { name: "orders-api" }, target, selector: { matchLabels: { app: "orders" } } },
    key: { policyRef: { name: "orders" }, secretRef: { name: "billing-key" } },
  };

  // Attempts by name: the object and the reason of its Ready condition.
  const attempts: ReadonlyArray<{ readonly name: string; readonly make: () => Manifest; readonly reason: string }> = [
    {
      name: "a policy for ann's API",
      make: () => own("ApiKeyPolicy", "by-id", { api: { id: ids.apiId }, target }),
      reason: refused,
    },
    ...["Match", "Override"].map((adopt) => ({
      name: `a policy that adopts it (${adopt})`,
      make: () =>
        own("ApiKeyPolicy", `by-id-${adopt.toLowerCase()}`, {
          api: { id: ids.apiId },
          target,
          adopt,
          deletionPolicy: "Delete",
        }),
      reason: refused,
    })),
    {
      name: "a policy of the same name, for an API of the same name and pods with the same labels",
      make: () => own("ApiKeyPolicy", "orders", claims.policy),
      reason: "Succeeded",
    },
    {
      name: "a policy with limits in ann's rate-limit namespace",
      make: () =>
        own("ApiKeyPolicy", "limited", {
          ...{ api: { name: "limited-api" }, target },
          rules: [{ ratelimits: [{ namespace: "public", identifier: "Key", limit: 1, duration: "60s" }] }],
        }),
      reason: refused,
    },
    {
      name: "a role of the name of ann's",
      make: () =>
        own("Role", "editor", { name: "EDITOR", permissions: [], adopt: "Override", deletionPolicy: "Delete" }),
      reason: isTogether ? "Conflict" : "Succeeded",
    },
    {
      name: "a role of a name that is granted to ann's namespace",
      make: () => own("Role", "granted", { name: "ann.admin" }),
      reason: isTogether ? "NotAllowed" : "Succeeded",
    },
    {
      name: "an override in ann's rate-limit namespace",
      make: () =>
        own("RatelimitOverride", "acme", {
          ...{ namespaceRef: { name: "public", namespace: ANN.namespace }, identifier: "acme" },
          ...{ limit: 0, duration: "60s" },
        }),
      reason: refused,
    },
    {
      name: "a rate-limit namespace of the name of ann's",
      make: () => own("RatelimitNamespace", "public", { name: "public", adopt: "Override", deletionPolicy: "Delete" }),
      reason: isTogether ? "Conflict" : "Succeeded",
    },
    {
      name: "a key for ann's policy",
      make: () =>
        own("ApiKey", "by-policy", {
          policyRef: { name: "orders", namespace: ANN.namespace },
          secretRef: { name: "by-policy" },
        }),
      reason: refused,
    },
    {
      name: "a key for ann's API",
      make: () => own("ApiKey", "by-api", { apiRef: { id: ids.apiId }, secretRef: { name: "by-api" } }),
      reason: refused,
    },
  ];

  test.each(attempts)(
    "$name of another tenant changes none of ann's objects, even on deletion",
    async ({ make, reason }) => {
      const one = make();
      await apply(user, one);
      await until(one, reason);
      expect(await everythingOfAnn()).toEqual(before);
      await as(user).removeAndWait(one);
      expect(await everythingOfAnn()).toEqual(before);
    },
    90_000,
  );

  test("copies of ann's objects with her metadata give no access to her resources", async () => {
    const statuses: Partial<Record<Kind, object>> = {
      Role: { roleId: "roleId" },
      RatelimitNamespace: { namespaceId: "namespaceId" },
      RatelimitOverride: { namespaceId: "namespaceId" },
      ApiKeyPolicy: { apiId: "apiId", policyId: "policyId" },
      ApiKey: { keyId: "keyId" },
    };
    const copies = Object.entries(HERS).map(([name, one]) => {
      const metadata = {
        finalizers: ["store.postern.dev/team-a"],
        annotations: {
          "postern.dev/workspace": "team-a",
          "postern.dev/policy": "orders",
          "postern.dev/adopt": "override",
        },
        labels: { "postern.dev/workspace": "team-a", "app.kubernetes.io/managed-by": "postern" },
        ownerReferences: [
          {
            apiVersion: API_VERSION,
            kind: one.kind,
            name: one.metadata.name,
            uid: uids[name as keyof typeof HERS],
            controller: true,
          },
        ],
      };
      const deletable = one.kind === "RatelimitOverride" || one.kind === "ApiKey" ? {} : { deletionPolicy: "Delete" };
      return own(one.kind, `copy-${one.metadata.name}`, { ...one.spec, ...deletable }, metadata);
    });
    for (const copy of copies) {
      await apply(user, copy);
      const forged = Object.fromEntries(
        Object.entries(statuses[copy.kind] ?? {}).map(([field, id]) => [field, ids[id as keyof typeof ids]]),
      );
      await as(user).patch(copy, { status: forged }, "status");
    }
    for (const copy of copies) {
      await waitFor(`${copy.metadata.name} to be looked at`, async () => {
        const { conditions = [] } = await statusOf(copy);
        return conditions.some(({ type, reason }) => type === "Ready" && reason !== "Pending") ? true : undefined;
      });
    }
    expect(await everythingOfAnn()).toEqual(before);
    for (const copy of copies) await as(user).remove(copy);
    // A finalizer of another workspace keeps its object until its owner removes it.
    await waitFor(
      "the copies to be gone",
      async () => {
        const left = await Promise.all(copies.map(async (copy) => [copy, await get(copy)] as const));
        const stuck = left.filter(([, found]) => found !== undefined);
        if (!isTogether) {
          for (const [copy] of stuck) {
            await as(user).patch(copy, { metadata: { finalizers: null } });
          }
        }
        return stuck.length === 0 ? true : undefined;
      },
      { deadlineMs: 30_000 },
    );
    expect(await everythingOfAnn()).toEqual(before);
  }, 120_000);

  test("Secrets, NetworkPolicies and pods that imitate ann's stay in their namespace", async () => {
    const owner = (kind: Kind, name: string, uid: string) => ({
      apiVersion: API_VERSION,
      kind,
      name,
      uid,
      controller: true,
    });
    const { namespace } = user;
    const objects = [
      {
        ...{ apiVersion: "v1", kind: "Secret", type: "postern.dev/api-key" },
        metadata: {
          ...{ name: "billing-key", namespace, ownerReferences: [owner("ApiKey", "billing", uids.key)] },
          annotations: { "postern.dev/key-id": ids.keyId },
        },
        stringData: { key: "forged" },
      },
      {
        ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" },
        metadata: {
          name: "postern-orders",
          namespace,
          ownerReferences: [owner("ApiKeyPolicy", "orders", uids.policy)],
        },
        spec: { podSelector: { matchLabels: { "postern.dev/gated-by": "elsewhere" } }, ingress: [{}] },
      },
    ];
    for (const one of objects) await as(user).create(one);
    const pod = {
      ...{ apiVersion: "v1", kind: "Pod" },
      metadata: {
        ...{ name: "orders-1", namespace },
        labels: { app: "orders", "postern.dev/gated-by": "orders", "postern.dev/workspace": "team-a" },
        annotations: { "postern.dev/policy": "orders" },
      },
      spec: { automountServiceAccountToken: false, containers: [{ name: "app", image: "app" }] },
    };
    await as(user).create(pod);
    await admin.patch(pod, { status: { phase: "Running" } }, "status");

    const policy = own("ApiKeyPolicy", "orders", claims.policy);
    const key = own("ApiKey", "billing", { ...claims.key, rotation: { overlap: "0s" } });
    await apply(user, policy);
    await apply(user, key);
    // The pod without a gate counts here, and the foreign NetworkPolicy is left unchanged.
    const status = await until(policy, "Conflict");
    expect(conditionOf(status, "Bypassable")).toMatchObject({ status: "True" });
    await until(key, "SecretNotOwned");
    expect((await get(secretOf("billing-key", user))).data).toEqual({ key: Buffer.from("forged").toString("base64") });
    expect((await get(networkPolicyOf("postern-orders", user))).spec.ingress).toEqual([{}]);
    expect(await everythingOfAnn()).toEqual(before);
    for (const one of [policy, key]) await as(user).removeAndWait(one);
    expect(await get(networkPolicyOf("postern-orders", user))).toBeDefined();
    expect(await everythingOfAnn()).toEqual(before);
  }, 90_000);
});

test("orphans of ann's manifests stay reserved for her", async () => {
  const left = {
    limits: manifest(ANN, "RatelimitNamespace", "left", { name: "left", deletionPolicy: "Orphan" }),
    policy: manifest(ANN, "ApiKeyPolicy", "left", { api: { name: "left-api" }, target: { port: 8080 } }),
  };
  for (const one of Object.values(left)) await apply(ANN, one);
  const { apiId } = await until(left.policy, "Succeeded");
  await until(left.limits, "Succeeded");
  for (const one of Object.values(left)) await as(ANN).removeAndWait(one);
  const own = (kind: Kind, name: string, spec: Record<string, unknown>) => manifest(BOB, kind, name, spec);
  const target = { port: 8080 };
  const tries = [
    own("ApiKeyPolicy", "left-id", { api: { id: apiId }, target, adopt: "Override" }),
    own("ApiKey", "left-key", { apiRef: { id: apiId }, secretRef: { name: "left-key" } }),
    own("ApiKeyPolicy", "left-limits", {
      ...{ api: { name: "other-api" }, target },
      rules: [{ ratelimits: [{ namespace: "left", identifier: "Key", limit: 1, duration: "60s" }] }],
    }),
  ];
  for (const one of tries) {
    await apply(BOB, one);
    const status = await until(one, "NotAllowed");
    expect(conditionOf(status, "Ready")?.message).toContain("postern ownership release");
  }
  const taken = own("RatelimitNamespace", "left", { name: "left", adopt: "Override" });
  await apply(BOB, taken);
  await until(taken, "Conflict");
  expect((await teams.a.call("apis.listKeys", { apiId })).data).toEqual([]);
  await apply(ANN, left.policy);
  expect(await until(left.policy, "Succeeded")).toMatchObject({ apiId });
}, 120_000);
