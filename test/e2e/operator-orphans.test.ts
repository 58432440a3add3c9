import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Administrator } from "../../api-server/domain/administration/administrator.ts";
import { releaseManaged, transferManaged } from "../../api-server/domain/administration/managed.ts";
import type { OperatorContext } from "../../operator/reconcilers/context.ts";
import { waitFor } from "../harness/wait.ts";
import { conditionOf, type Status, type TestManifest } from "./operator-world.ts";
import { type Name, openReconcilerWorld, type ReconcilerWorld } from "./reconciler-world.ts";

/*
 * Objects that a deleted manifest leaves in the database, mainly the API of customers' keys: the returning manifest finds them, and no
 * other gets them without permission.
 */

let world: ReconcilerWorld;
let administrator: Administrator;
let workspaceId: string;
beforeAll(async () => {
  world = await openReconcilerWorld();
  administrator = { ...world.store.server.deps, actor: { type: "cli", id: "test", name: "test" } };
  const { rows } = await administrator.db.query<{ id: string }>("select id from workspaces");
  workspaceId = rows[0]?.id ?? "";
});
afterAll(() => world?.close());

const manifest = (kind: string, namespace: string, name: string, spec: Record<string, unknown>): TestManifest => ({
  kind,
  metadata: { name, namespace },
  spec,
});
const policy = (name: string, spec: Record<string, unknown> = {}, namespace = "prod") =>
  manifest("ApiKeyPolicy", namespace, name, { api: { name: `${name}-api` }, target: { port: 80 }, ...spec });

const readyOf = (status: Status) => conditionOf(status, "Ready");
async function applied(one: TestManifest, ctx?: OperatorContext): Promise<Status> {
  await world.apply(one);
  await world.work(one, ctx).catch(() => undefined);
  return world.statusIn(one);
}
/** Deletes the manifest and reconciles until it is gone. */
async function pruned(one: Name, ctx?: OperatorContext): Promise<void> {
  await world.remove(one);
  await world.work(one, ctx);
  expect(world.objectOf(one)).toBeUndefined();
}
async function abandon(one: TestManifest): Promise<void> {
  const annotations = { "postern.dev/abandon": "true" };
  await world.apply({ ...one, metadata: { ...one.metadata, annotations } });
  await waitFor(
    "the annotation",
    async () => Object.keys(world.objectOf(one)?.metadata.annotations ?? {}).length === 1,
  );
}
const api = (procedure: string, body: object) => world.store.call(procedure, body);
async function aKey(apiId: unknown): Promise<{ key: string; keyId: string }> {
  return (await api("keys.createKey", { apiId })).data;
}
const verified = async (key: string): Promise<string> => (await api("keys.verifyKey", { key })).data.code;
const ownerOf = async (kind: string, id: unknown) => (await api("managed.getObject", { kind, id })).data;

describe("a policy that is deleted and reapplied", () => {
  test("reapplied policy gets its former API, keys and id", async () => {
    const one = policy("again");
    const first = await applied(one);
    const { key } = await aKey(first.apiId);
    await pruned(one);
    expect(await ownerOf("api", first.apiId)).toEqual({
      kind: "api",
      id: first.apiId,
      lastManager: "test/ApiKeyPolicy/prod/again",
    });
    const second = await applied(one);
    expect(readyOf(second)).toMatchObject({ status: "True" });
    expect(second.apiId).toBe(first.apiId);
    expect(second.policyId).toBe(first.policyId);
    expect(await ownerOf("api", first.apiId)).toMatchObject({ manager: "test/ApiKeyPolicy/prod/again" });
    expect(await verified(key)).toBe("VALID");
  });

  test("reapplied policy gets its former API even with another API name", async () => {
    const { apiId } = await applied(policy("renamed"));
    await pruned(policy("renamed"));
    const second = await applied(policy("renamed", { api: { name: "other-name" } }));
    expect(second.apiId).toBe(apiId);
    expect((await api("apis.getApi", { apiId })).data.name).toBe("other-name");
  });

  test("policy that is reapplied repeatedly gets its latest API, not an earlier one", async () => {
    const one = policy("often");
    const { apiId } = await applied(one);
    for (let i = 0; i < 3; i++) {
      await pruned(one);
      expect((await applied(one)).apiId).toBe(apiId);
    }
  });

  test("reapplied policy creates another API if the former one was deleted", async () => {
    const one = policy("deleted");
    const { apiId } = await applied(one);
    await pruned(one);
    await api("apis.deleteApi", { apiId });
    const second = await applied(one);
    expect(readyOf(second)).toMatchObject({ status: "True" });
    expect(second.apiId).not.toBe(apiId);
  });

  test("reapplied policy gets its API back after the abandon annotation", async () => {
    const one = policy("escaped");
    const first = await applied(one);
    const { key } = await aKey(first.apiId);
    await abandon(one);
    await pruned(one);
    expect(await ownerOf("api", first.apiId)).toMatchObject({ manager: "test/ApiKeyPolicy/prod/escaped" });
    const second = await applied(one);
    expect(readyOf(second)).toMatchObject({ status: "True" });
    expect([second.apiId, second.policyId]).toEqual([first.apiId, first.policyId]);
    expect(await verified(key)).toBe("VALID");
  });
});

describe("what a policy left", () => {
  test("orphaned API is reserved for its namespace unless an administrator permits another use", async () => {
    const { apiId } = await applied(policy("wanted"));
    await pruned(policy("wanted"));
    // With an equal name it creates a separate API.
    const own = await applied(policy("wanted", {}, "dev"));
    expect(readyOf(own)).toMatchObject({ status: "True" });
    expect(own.apiId).not.toBe(apiId);
    for (const adopt of [undefined, "Match", "Override"]) {
      const taking = policy(
        `taking-${adopt?.toLowerCase() ?? "not"}`,
        { api: { id: apiId }, ...(adopt ? { adopt } : {}) },
        "dev",
      );
      const status = await applied(taking);
      expect(readyOf(status)).toMatchObject({ status: "False", reason: "NotAllowed" });
      expect(readyOf(status)?.message).toContain("postern ownership release");
      expect(status.policyId).toBeUndefined();
    }
    expect(await ownerOf("api", apiId)).toMatchObject({ lastManager: "test/ApiKeyPolicy/prod/wanted" });

    await releaseManaged(administrator, { workspaceId, manager: "test/ApiKeyPolicy/prod/wanted" });
    const granted = policy("taking-override", { api: { id: apiId }, adopt: "Override" }, "dev");
    expect(readyOf(await world.reconcile(granted))).toMatchObject({ status: "True" });
    expect(await ownerOf("api", apiId)).toMatchObject({ manager: "test/ApiKeyPolicy/dev/taking-override" });
    // The former owner creates another API and leaves this one unchanged.
    expect((await applied(policy("wanted"))).apiId).not.toBe(apiId);
  });

  test("orphaned API may be used and adopted by id within its namespace", async () => {
    const { apiId } = await applied(policy("before"));
    await pruned(policy("before"));
    const user = policy("after", { api: { id: apiId } });
    expect(readyOf(await applied(user))).toMatchObject({ status: "True" });
    expect(await ownerOf("api", apiId)).not.toHaveProperty("manager");
    expect(readyOf(await applied(policy("after", { api: { id: apiId }, adopt: "Match" })))).toMatchObject({
      status: "True",
    });
    expect(await ownerOf("api", apiId)).toMatchObject({ manager: "test/ApiKeyPolicy/prod/after" });
    // Like an API that it created, it remains when the manifest is deleted.
    await pruned(user);
    expect(await ownerOf("api", apiId)).toMatchObject({ lastManager: "test/ApiKeyPolicy/prod/after" });
  });

  test("administrator transfers an orphaned API with its keys to another cluster", async () => {
    const one = policy("moving");
    const { apiId } = await applied(one);
    const { key } = await aKey(apiId);
    await pruned(one);
    await transferManaged(administrator, { workspaceId, from: "test", to: "east" });
    const east = { ...world.ctx, cluster: "east" };
    const there = await applied(one, east);
    expect(readyOf(there)).toMatchObject({ status: "True" });
    expect(there.apiId).toBe(apiId);
    expect(await ownerOf("api", apiId)).toMatchObject({ manager: "east/ApiKeyPolicy/prod/moving" });
    expect(await verified(key)).toBe("VALID");
    await pruned(one, east);
    await transferManaged(administrator, { workspaceId, from: "east", to: "test" });
  });
});

test("administrator releases objects of a policy with the abandon annotation", async () => {
  const one = policy("gone-for-good");
  const { apiId } = await applied(one);
  await abandon(one);
  await pruned(one);
  const heir = policy("heir", { api: { id: apiId }, adopt: "Override" }, "dev");
  expect(readyOf(await applied(heir))).toMatchObject({ reason: "NotAllowed" });
  const freed = await releaseManaged(administrator, { workspaceId, manager: "test/ApiKeyPolicy/prod/gone-for-good" });
  expect(freed.map(({ kind }) => kind)).toEqual(["api", "policy"]);
  expect(readyOf(await world.reconcile(heir))).toMatchObject({ status: "True" });
  expect(await ownerOf("api", apiId)).toMatchObject({ manager: "test/ApiKeyPolicy/dev/heir" });
});

const KEPT = { deletionPolicy: "Orphan" };
describe.each([
  {
    kind: "Role",
    of: "role",
    idIn: "roleId",
    spec: (name: string): Record<string, unknown> => ({ name, permissions: ["orders.read"], ...KEPT }),
  },
  {
    kind: "RatelimitNamespace",
    of: "namespace",
    idIn: "namespaceId",
    spec: (name: string): Record<string, unknown> => ({ name, ...KEPT }),
  },
])("an orphaned $kind", ({ kind, of, idIn, spec }) => {
  test("orphaned object is adopted only by its returning manifest", async () => {
    const one = manifest(kind, "prod", "kept", spec(`kept-${of}`));
    const first = await applied(one);
    await pruned(one);
    const other = manifest(kind, "dev", "kept", { ...spec(`kept-${of}`), adopt: "Override" });
    const refused = await applied(other);
    expect(readyOf(refused)).toMatchObject({ status: "False", reason: "Conflict" });
    expect(readyOf(refused)?.message).toContain("postern ownership release");
    await pruned(other);
    const second = await applied(one);
    expect(readyOf(second)).toMatchObject({ status: "True" });
    expect(second[idIn]).toBe(first[idIn]);
    expect(await ownerOf(of, first[idIn])).toMatchObject({ manager: `test/${kind}/prod/kept` });
  });
});

test("orphaned RatelimitOverride is adopted by its returning manifest", async () => {
  const limits = manifest("RatelimitNamespace", "prod", "limits", { name: "limits" });
  const override = manifest("RatelimitOverride", "prod", "acme", {
    namespaceRef: { name: "limits" },
    identifier: "acme",
    limit: 5,
    duration: "1h",
    ...KEPT,
  });
  await applied(limits);
  const first = await applied(override);
  await pruned(override);
  // An equal and a different override.
  expect((await applied(override)).overrideId).toBe(first.overrideId);
  expect(await ownerOf("override", first.overrideId)).toMatchObject({ manager: "test/RatelimitOverride/prod/acme" });
  await pruned(override);
  const second = await applied({ ...override, spec: { ...override.spec, limit: 6 } });
  expect(second.overrideId).toBe(first.overrideId);
  expect(readyOf(second)).toMatchObject({ status: "True" });
});

test("Role held by keys survives its manifest unless its deletionPolicy is Delete", async () => {
  const { apiId } = (await api("apis.createApi", { name: "held" })).data;
  const role = (name: string, spec: Record<string, unknown> = {}) => manifest("Role", "prod", name, { name, ...spec });
  for (const [name, spec] of [
    ["held", {}],
    ["said", { deletionPolicy: "Delete" }],
  ] as const) {
    await applied(role(name, spec));
    await api("keys.createKey", { apiId, roles: [name] });
  }
  await pruned(role("said"));
  await world.remove(role("held"));
  await world.work(role("held"));
  expect(readyOf(world.statusIn(role("held")))).toMatchObject({
    status: "False",
    reason: "DeleteProtected",
    message: expect.stringMatching(
      /1 key has the role.*: kubectl -n prod annotate role[.]postern[.]dev held postern[.]dev[/]abandon=true$/,
    ),
  });
  expect(await api("permissions.getRole", { role: "held" })).toMatchObject({ status: 200 });
});
