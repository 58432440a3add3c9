import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Kind } from "../../core/manifests/index.ts";
import type { Operator } from "../../operator/start.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
} from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import {
  applyCrds,
  conditionOf,
  type HttpResponse,
  openManifests,
  openStore,
  operatorOf,
  type Status,
  type Store,
  type TestManifest,
  untilDisconnected,
  untilReason,
} from "./operator-world.ts";
import { openTeam, type Team } from "./teams.ts";

/*
 * Two teams with one workspace each, in one cluster with one operator. They use the same names, and neither may change, read or block
 * objects of the other.
 */

let kubernetes: TestKubernetes;
let world: Awaited<ReturnType<typeof openManifests>>;
let store: Store;
let operator: Operator;
let dir: string;
let keysDir: string;
let teamA: Team;
let teamB: Team;
/** Namespaces: two of team A, one of team B, and one without a workspace. */
let ns: { readonly a: string; readonly a2: string; readonly b: string; readonly none: string };

beforeAll(async () => {
  kubernetes = await startKubernetes();
  await applyCrds(kubernetes);
  world = await openManifests(kubernetes);
  const [a, a2, b, none] = await Promise.all(
    [1, 2, 3, 4].map(async () => (await createTestNamespace(kubernetes)).name),
  );
  ns = { a: a ?? "", a2: a2 ?? "", b: b ?? "", none: none ?? "" };
  await label(ns.a, "team-a");
  await label(ns.a2, "team-a");
  await label(ns.b, "team-b");
  store = await openStore();
  [teamA, teamB] = [await openTeam(store, "team-a"), await openTeam(store, "team-b")];
  dir = await mkdtemp(join(tmpdir(), "postern-workspaces-"));
  keysDir = await mkdtemp(join(tmpdir(), "postern-root-keys-"));
  for (const { name, operatorKey } of [teamA, teamB]) await writeFile(join(keysDir, name), `${operatorKey}\n`);
  await writeFile(join(dir, "tenancy.yaml"), "");
  operator = await operatorOf(
    store,
    { kind: "kubernetes", kubeconfig: kubernetes.kubeconfigPath, namespaces: Object.values(ns) },
    { keys: { rootKeysDir: keysDir }, tenancyFile: join(dir, "tenancy.yaml") },
  );
}, KUBERNETES_START_MS);
afterAll(async () => {
  await operator?.close();
  await store?.close();
  for (const name of Object.values(ns ?? {})) {
    await world.remove({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  await world?.close();
  for (const folder of [dir, keysDir]) await rm(folder, { recursive: true, force: true });
});

const label = async (namespace: string, workspace: string | undefined): Promise<void> => {
  const one = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  await world.patch(one, { metadata: { labels: { "postern.dev/workspace": workspace ?? null } } });
};
const apply = async (one: TestManifest): Promise<void> => void (await world.apply(one));
const remove = (one: TestManifest): Promise<void> => world.remove(one);
const until = (one: TestManifest, reason: string) => untilReason(world, one, reason);
const manifest = (kind: Kind, namespace: string, name: string, spec: Record<string, unknown>): TestManifest => ({
  kind,
  metadata: { name, namespace },
  spec,
});
const role = (namespace: string, name: string, spec: Record<string, unknown> = {}) =>
  manifest("Role", namespace, name, { name, ...spec });

/** Returns one object of each kind with equal names in every namespace and different contents. */
const everyKind = (namespace: string, limit: number): Readonly<Record<Kind, TestManifest>> => ({
  ApiKey: manifest("ApiKey", namespace, "orders", {
    policyRef: { name: "orders" },
    owner: "acme",
    roles: ["editor"],
    secretRef: { name: "orders-key" },
  }),
  Role: manifest("Role", namespace, "editor", { name: "editor", permissions: [`of.${namespace}`] }),
  RatelimitNamespace: manifest("RatelimitNamespace", namespace, "limits", {
    name: "limits",
    allowedNamespaces: [ns.a, ns.b],
  }),
  RatelimitOverride: manifest("RatelimitOverride", namespace, "acme", {
    namespaceRef: { name: "limits" },
    identifier: "acme",
    limit,
    duration: "1h",
  }),
  ApiKeyPolicy: manifest("ApiKeyPolicy", namespace, "orders", {
    api: { name: "orders" },
    target: { port: 80 },
    allowedNamespaces: [ns.a, ns.b],
    deletionPolicy: "Delete",
    rules: [{ ratelimits: [{ namespace: "limits", identifier: "Key", limit, duration: "60s" }] }],
  }),
});

/** Returns the stored data of these objects in a team's workspace. */
async function stored(team: Team, statuses: Readonly<Record<Kind, Status>>): Promise<unknown> {
  const { roleId } = statuses.Role;
  const { namespaceId } = statuses.RatelimitNamespace;
  const { apiId, policyId } = statuses.ApiKeyPolicy;
  const { keyId } = statuses.ApiKey;
  const calls: Array<[string, object]> = [
    ["permissions.getRole", { role: roleId }],
    ["ratelimit.getNamespace", { namespace: namespaceId }],
    ["ratelimit.listOverrides", { namespace: namespaceId }],
    ["apis.getApi", { apiId }],
    ["policies.getPolicy", { policyId }],
    ["keys.getKey", { keyId }],
  ];
  return await Promise.all(
    calls.map(async ([procedure, body]) => {
      const response: HttpResponse = await team.call(procedure, body);
      return { procedure, status: response.status, data: response.data };
    }),
  );
}

const kindsOf = (objects: Readonly<Record<Kind, TestManifest>>) =>
  Object.entries(objects) as Array<[Kind, TestManifest]>;
async function allReady(objects: Readonly<Record<Kind, TestManifest>>): Promise<Record<Kind, Status>> {
  for (const [, one] of kindsOf(objects)) await apply(one);
  const ready = await Promise.all(kindsOf(objects).map(async ([kind, one]) => [kind, await until(one, "Succeeded")]));
  return Object.fromEntries(ready) as Record<Kind, Status>;
}

test("equally named objects of two workspaces are independent", async () => {
  const [mine, theirs] = [everyKind(ns.a, 5), everyKind(ns.b, 7)];
  const myStatuses = await allReady(mine);
  const before = await stored(teamA, myStatuses);
  for (const response of before as Array<{ status: number }>) expect(response.status).toBe(200);

  const theirStatuses = await allReady(theirs);
  expect(await stored(teamA, myStatuses)).toEqual(before);
  const role = await teamB.call("permissions.getRole", { role: "editor" });
  expect(role.data.permissions).toMatchObject([{ slug: `of.${ns.b}` }]);
  for (const [kind, id] of [
    ["ApiKey", "keyId"],
    ["Role", "roleId"],
    ["RatelimitNamespace", "namespaceId"],
    ["ApiKeyPolicy", "apiId"],
  ] as const) {
    expect(theirStatuses[kind][id], kind).not.toBe(myStatuses[kind][id]);
  }

  // References to objects of the other team find nothing, even if those permit it.
  const far = manifest("RatelimitOverride", ns.b, "far", {
    namespaceRef: { name: "limits", namespace: ns.a },
    identifier: "far",
    limit: 0,
    duration: "1h",
  });
  const foreign = manifest("ApiKeyPolicy", ns.b, "foreign", {
    api: { id: myStatuses.ApiKeyPolicy.apiId },
    target: { port: 80 },
  });
  const farKey = manifest("ApiKey", ns.b, "far", {
    policyRef: { name: "orders", namespace: ns.a },
    secretRef: { name: "far-key" },
  });
  const foreignKey = manifest("ApiKey", ns.b, "foreign", {
    apiRef: { id: myStatuses.ApiKeyPolicy.apiId },
    secretRef: { name: "foreign-key" },
  });
  for (const one of [far, foreign, farKey, foreignKey]) await apply(one);
  await until(farKey, "DependencyNotReady");
  await until(foreignKey, "DependencyNotReady");
  await until(far, "DependencyNotReady");
  await until(foreign, "DependencyNotReady");
  expect(await stored(teamA, myStatuses)).toEqual(before);

  // A policy whose API is to be deleted waits for its keys.
  await remove(theirs.ApiKey);
  await untilDisconnected(world, theirs.ApiKey);
  const { ApiKey: _, ...others } = theirs;
  const all = [...Object.values(others), far, foreign, farKey, foreignKey];
  for (const one of all) await remove(one);
  for (const one of all) await untilDisconnected(world, one);
  expect(await stored(teamA, myStatuses)).toEqual(before);
  for (const response of (await stored(teamB, theirStatuses)) as Array<{ status: number }>) {
    expect(response.status).toBe(404);
  }
  for (const [kind, one] of kindsOf(mine))
    expect(conditionOf(await world.status(one), "Ready"), kind).toMatchObject({ status: "True" });
}, 60_000);

test("name in a workspace belongs to the older of two objects from different namespaces", async () => {
  const [older, younger] = [role(ns.a, "shared"), role(ns.a2, "shared")];
  await apply(older);
  await until(older, "Succeeded");
  await apply(younger);
  await until(younger, "Conflict");
});

test("object in a namespace without a workspace is Stalled with a reason until the namespace is labeled", async () => {
  const one = role(ns.none, "unlabelled");
  await apply(one);
  const status = await until(one, "WorkspaceNotFound");
  expect(conditionOf(status, "Stalled")?.message).toContain("postern.dev/workspace");
  for (const team of [teamA, teamB]) {
    expect(await team.call("permissions.getRole", { role: "unlabelled" })).toMatchObject({ status: 404 });
  }
  await label(ns.none, "team-b");
  await until(one, "Succeeded");
  expect(await teamB.call("permissions.getRole", { role: "unlabelled" })).toMatchObject({ status: 200 });
  expect(await teamA.call("permissions.getRole", { role: "unlabelled" })).toMatchObject({ status: 404 });
  await remove(one);
  await untilDisconnected(world, one);
});

test("objects of a namespace that moves to another workspace keep their resources and report the move", async () => {
  await label(ns.none, "team-a");
  const [synced, later] = [role(ns.none, "settled"), role(ns.none, "later")];
  await apply(synced);
  const { roleId } = await until(synced, "Succeeded");

  await label(ns.none, "team-b");
  const status = await until(synced, "WorkspaceChanged");
  expect(conditionOf(status, "Stalled")?.message).toContain("team-a");
  // A competitor in the new workspace is not blocked, and new objects act there.
  const competitor = role(ns.b, "settled");
  await apply(competitor);
  await until(competitor, "Succeeded");
  await apply(later);
  await until(later, "Succeeded");
  expect(await teamB.call("permissions.getRole", { role: "later" })).toMatchObject({ status: 200 });
  const there = await teamA.call("permissions.getRole", { role: "settled" });
  expect(there).toMatchObject({ status: 200, data: { id: roleId } });

  // A deleted object waits: nothing happens in a workspace to which the namespace does not belong.
  await remove(synced);
  await until(synced, "WorkspaceChanged");
  expect(await teamA.call("permissions.getRole", { role: "settled" })).toMatchObject({ status: 200 });
  await remove(later);
  await untilDisconnected(world, later);
  await label(ns.none, "team-a");
  await untilDisconnected(world, synced);
  expect(await teamA.call("permissions.getRole", { role: "settled" })).toMatchObject({ status: 404 });
  expect(await teamB.call("permissions.getRole", { role: "settled" })).toMatchObject({ status: 200 });
});

test("workspace root keys are added, changed and removed without a restart", async () => {
  await label(ns.none, "team-c");
  const one = role(ns.none, "followed");
  await apply(one);
  const status = await until(one, "WorkspaceNotFound");
  expect(conditionOf(status, "Stalled")?.message).toContain("team-c");
  const teamC = await openTeam(store, "team-c");
  await writeFile(join(keysDir, "team-c"), teamC.operatorKey);
  await until(one, "Succeeded");

  // The old key is revoked before the new one exists.
  await teamC.disableKeys();
  const next = await teamC.anotherKey();
  await writeFile(join(keysDir, "team-c"), next);
  await apply(role(ns.none, "followed", { description: "with the next key" }));
  await waitFor("the change with the next key", async () => {
    const { data } = await teamC.call("permissions.getRole", { role: "followed" }, next);
    return data?.description === "with the next key";
  });

  await rm(join(keysDir, "team-c"));
  await until(one, "WorkspaceNotFound");
  expect(await teamC.call("permissions.getRole", { role: "followed" }, next)).toMatchObject({ status: 200 });
  const other = role(ns.a, "goes-on");
  await apply(other);
  await until(other, "Succeeded");
  await writeFile(join(keysDir, "team-c"), next);
  await remove(one);
  await untilDisconnected(world, one);
}, 60_000);

test("name grant reserves a name for certain namespaces without blocking other names", async () => {
  const squatter = role(ns.a2, "granted.admin");
  await writeFile(
    join(dir, "tenancy.yaml"),
    `nameGrants: [{ names: ["granted.*"], namespaces: [${ns.a}], workspace: team-a }]`,
  );
  await apply(role(ns.a2, "unrelated"));
  await until(role(ns.a2, "unrelated"), "Succeeded");
  await waitFor("the grant", async () => {
    await apply(squatter);
    return conditionOf(await world.status(squatter), "Ready")?.reason === "NotAllowed";
  });
  // The rightful object is younger, and a squatter claims the same name.
  const rightful = role(ns.a, "granted.admin");
  await apply(rightful);
  await until(rightful, "Succeeded");
  await until(squatter, "NotAllowed");
  // Without the grant the older object wins again, but stored objects stay with their owner.
  await writeFile(join(dir, "tenancy.yaml"), "");
  await until(squatter, "Conflict");
  expect(conditionOf(await world.status(rightful), "Ready")).toMatchObject({ status: "True" });
});

test("rejected root key stops only the objects of its workspace", async () => {
  await writeFile(join(keysDir, "team-refused"), "root_of_no_workspace_0123456789");
  await label(ns.none, "team-refused");
  const [stuck, free] = [role(ns.none, "stuck"), role(ns.b, "free")];
  await apply(stuck);
  await apply(free);
  await until(free, "Succeeded");
  await until(stuck, "ApiUnavailable");
});
