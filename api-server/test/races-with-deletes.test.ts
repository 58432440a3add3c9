import type { PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import { procedures } from "../v2/index.ts";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";
import { makeResources, policyBody, type Resources } from "./resources.ts";

/*
 * A change runs concurrently with the deletion of a referenced object, in both possible orders of the transactions: the deletion is in
 * progress when the change starts, or starts while the change waits for a lock. The response must be a documented one.
 */

let t: TestApp;
let resources: Resources;
beforeAll(async () => {
  t = await buildTestApp();
  resources = makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: t.data });
});
afterAll(() => t.close());

/** Creates one object of each kind, each related to the key. */
async function aWorld() {
  const permission = await resources.permission();
  const role = await resources.role([permission.slug]);
  const identity = await resources.identity();
  const namespace = await resources.namespace();
  const key = await resources.key({
    externalId: identity.externalId,
    permissions: [permission.slug],
    roles: [role.name],
    credits: { remaining: 10 },
    ratelimits: [{ name: "requests", limit: 5, duration: 60_000 }],
  });
  return { permission, role, identity, namespace, key };
}
type World = Awaited<ReturnType<typeof aWorld>>;

const HOUR_MS = 3_600_000;
const CHANGES: Record<string, (world: World) => unknown> = {
  "keys.createKey": ({ key, identity, role, permission }) => ({
    apiId: key.apiId,
    externalId: identity.externalId,
    roles: [role.name],
    permissions: [permission.slug],
  }),
  "keys.rerollKey": ({ key }) => ({ keyId: key.keyId, expiration: HOUR_MS }),
  "keys.updateKey": ({ key, identity, role, permission }) => ({
    keyId: key.keyId,
    externalId: identity.externalId,
    roles: [role.name],
    permissions: [permission.slug],
    credits: { remaining: 5 },
    ratelimits: [{ name: "others", limit: 5, duration: 60_000, autoApply: true }],
  }),
  "keys.updateCredits": ({ key }) => ({ keyId: key.keyId, operation: "increment", value: 1 }),
  "keys.deleteKey": ({ key }) => ({ keyId: key.keyId, permanent: true }),
  "keys.addRoles": ({ key, role }) => ({ keyId: key.keyId, roles: [role.name] }),
  "keys.setRoles": ({ key, role }) => ({ keyId: key.keyId, roles: [role.name] }),
  "keys.removeRoles": ({ key, role }) => ({ keyId: key.keyId, roles: [role.name] }),
  "keys.addPermissions": ({ key, permission }) => ({ keyId: key.keyId, permissions: [permission.slug] }),
  "keys.setPermissions": ({ key, permission }) => ({ keyId: key.keyId, permissions: [permission.slug] }),
  "keys.removePermissions": ({ key, permission }) => ({ keyId: key.keyId, permissions: [permission.slug] }),
  "identities.updateIdentity": ({ identity }) => ({
    identity: identity.externalId,
    meta: { a: 1 },
    ratelimits: [{ name: "all", limit: 5, duration: 60_000, autoApply: true }],
  }),
  "identities.deleteIdentity": ({ identity }) => ({ identity: identity.externalId }),
  "permissions.setRolePermissions": ({ role, permission }) => ({ roleId: role.roleId, permissions: [permission.slug] }),
  "permissions.deleteRole": ({ role }) => ({ role: role.name }),
  "permissions.deletePermission": ({ permission }) => ({ permission: permission.slug }),
  "managed.applyObject": ({ key, namespace }) =>
    policyBody(key.apiId, resources.name("policy"), {
      rules: [{ ratelimits: [{ namespace: namespace.namespace, identifier: "Key", limit: 5, duration: "1m" }] }],
    }),
  "apis.deleteApi": ({ key }) => ({ apiId: key.apiId }),
  "ratelimit.setOverride": ({ namespace }) => ({
    namespace: namespace.namespace,
    identifier: "someone",
    limit: 5,
    duration: 60_000,
  }),
};

/** Deletions as performed by the procedures, in a transaction that the test keeps open. */
const DELETIONS: Record<string, (world: World) => [text: string, id: string]> = {
  api: ({ key }) => ["update apis set deleted_at = 5 where id = $1", key.apiId],
  key: ({ key }) => ["update keys set deleted_at = 5 where id = $1", key.keyId],
  "key for good": ({ key }) => ["delete from keys where id = $1", key.keyId],
  identity: ({ identity }) => ["update identities set deleted_at = 5 where id = $1", identity.identityId],
  role: ({ role }) => ["delete from roles where id = $1", role.roleId],
  permission: ({ permission }) => ["delete from permissions where id = $1", permission.permissionId],
  namespace: ({ namespace }) => ["update ratelimit_namespaces set deleted_at = 5 where id = $1", namespace.namespaceId],
};

async function inHeldTransaction<T>(work: (tx: PoolClient) => Promise<T>): Promise<T> {
  const tx = await t.deps.db.connect();
  try {
    await tx.query("begin");
    return await work(tx);
  } finally {
    await tx.query("rollback").catch(() => undefined);
    tx.release();
  }
}

/** Resolves when the change waits for a lock or has a response. */
async function untilBlocked(response: Promise<Reply>): Promise<void> {
  let isAnswered = false;
  void response.then(() => {
    isAnswered = true;
  });
  const text = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const blocked = async () => isAnswered || ((await t.deps.db.query(text)).rowCount ?? 0) > 0;
  await waitFor("the change to wait or to be answered", blocked, { everyMs: 2 });
}

/** Returns the problem of a response, or `undefined` if it is a success or a documented error. */
function problemOf(path: string, { status, body }: Reply): string | undefined {
  if (status === 200) return undefined;
  const kind = String(body.error.type).split("/").at(-1) ?? "";
  const documented = procedures.find((one) => one.path === path)?.errors ?? [];
  return (documented as readonly string[]).includes(kind) ? undefined : `${status} ${kind}`;
}

describe.each(Object.keys(CHANGES))("%s", (path) => {
  const bodyOf = (world: World): unknown => CHANGES[path]?.(world);

  test("change succeeds without a concurrent deletion", async () => {
    expect((await t.call(path, bodyOf(await aWorld()))).status).toBe(200);
  });

  test("change that starts while another call deletes the object causes no internal error", async () => {
    const faults: string[] = [];
    for (const [what, deletion] of Object.entries(DELETIONS)) {
      const world = await aWorld();
      const response = await inHeldTransaction(async (tx) => {
        const [text, id] = deletion(world);
        await tx.query(text, [id]);
        const change = t.call(path, bodyOf(world));
        await untilBlocked(change);
        await tx.query("commit");
        return change;
      });
      const fault = problemOf(path, response);
      if (fault !== undefined) faults.push(`${what}: ${fault}`);
    }
    expect(faults).toEqual([]);
  });

  test("change that waits for the lock of another call's deletion causes no internal error", async () => {
    const faults: string[] = [];
    for (const [what, deletion] of Object.entries(DELETIONS)) {
      for (const table of ["keys", "roles"]) {
        const world = await aWorld();
        const held = table === "keys" ? world.key.keyId : world.role.roleId;
        const [text, id] = deletion(world);
        if (id === held) continue;
        const response = await inHeldTransaction(async (tx) => {
          await tx.query(`select from ${table} where id = $1 for no key update`, [held]);
          const change = t.call(path, bodyOf(world));
          await untilBlocked(change);
          await t.deps.db.query(text, [id]);
          await tx.query("rollback");
          return change;
        });
        const fault = problemOf(path, response);
        if (fault !== undefined) faults.push(`${what} behind ${table}: ${fault}`);
      }
    }
    expect(faults).toEqual([]);
  });
});
