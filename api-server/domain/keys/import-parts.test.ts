import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../../../test/harness/wait.ts";
import { insertMigration } from "../../db/migrations-of-keys.ts";
import { insertPermissionsForSlugs } from "../../db/permissions.ts";
import { insertRole } from "../../db/roles.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";
import { ensureImportParts } from "./import-parts.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

test("key import can refer to more identities than a JavaScript function call can have arguments", async () => {
  const count = 135_000;
  const tx = await t.deps.db.connect();
  try {
    // Without triggers, because these rows need no marks, and without the index that takes longest.
    await tx.query("begin; set local session_replication_role = replica; drop index if exists identities_search");
    const caller = {
      workspaceId: t.workspace.id,
      actor: { type: "rootkey" as const, id: "root", name: "root key" },
      permissions: new Set<string>(),
    };
    const named = Array.from({ length: count }, (_, i) => ({ externalId: `user_${i}` }));
    const deps = await ensureImportParts(tx, { caller, deps: t.deps, require: () => undefined }, named);
    expect(deps.identityIds.size).toBe(count);
    expect([...deps.events]).toHaveLength(count);
  } finally {
    await tx.query("rollback");
    tx.release();
  }
});

test("concurrent creation of the same roles and permissions does not deadlock", async () => {
  const { apiId } = await t.data("apis.createApi", { name: "orders" });
  const { id: workspaceId } = t.workspace;
  const migrationId = "mig_order";
  await insertMigration(t.deps.db, { id: migrationId, workspaceId, name: "old", algorithm: "sha256", createdAt: 0 });
  // As permissions.createRole does.
  const other = await t.deps.db.connect();
  try {
    // Shorter than the database's deadlock check.
    await other.query("begin; set local lock_timeout = '500ms'");
    const role = { id: "role_order", name: "order.role", description: null, manager: null };
    await insertRole(other, { ...role, workspaceId, createdAt: 0 });
    const keys = [{ hash: "order.hash", roles: ["order.role"], permissions: ["order.permission"] }];
    const importing = t.call("keys.migrateKeys", { apiId, migrationId, keys });
    await waitFor("the import to wait for the role", async () => {
      const text = `select from pg_stat_activity
                     where datname = current_database() and wait_event_type = 'Lock' and query like 'insert into roles%'`;
      return (await t.deps.db.query(text)).rowCount === 1;
    });
    const permissions = [{ id: "perm_order", slug: "order.permission" }];
    expect(await insertPermissionsForSlugs(other, { workspaceId, createdAt: 0, permissions })).toHaveLength(1);
    await other.query("commit");
    expect((await importing).status).toBe(200);
  } finally {
    await other.query("rollback");
    other.release();
  }
});
