import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "orders" }));
});
afterAll(() => t.close());

test("role or permission that 7,000 keys hold is deleted in batches, with outbox entries for the keys", async () => {
  const { db } = t.deps;
  const { roleId } = await t.data("permissions.createRole", { name: "Everybody" });
  const { permissionId } = await t.data("permissions.createPermission", { name: "All", slug: "everybody" });
  const count = 7_000;
  await db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, created_at)
     select 'key_many_' || i, $1, $2, 'many' || i, '', 0 from generate_series(1, $3::integer) as i`,
    [t.workspace.id, apiId, count],
  );
  for (const [table, column, id] of [
    ["key_roles", "role_id", roleId],
    ["key_permissions", "permission_id", permissionId],
  ]) {
    await db.query(
      `insert into ${table} (key_id, ${column}, workspace_id)
       select 'key_many_' || i, $2, $1 from generate_series(1, $3::integer) as i`,
      [t.workspace.id, id, count],
    );
  }
  for (const [path, body] of [
    ["permissions.deleteRole", { role: roleId }],
    ["permissions.deletePermission", { permission: permissionId }],
  ] as const) {
    await db.query("truncate outbox");
    expect((await t.call(path, body)).status).toBe(200);
    const { rows } = await db.query("select count(distinct id) as keys from outbox where kind = 'keyId'");
    expect(rows).toEqual([{ keys: count }]);
    const deps = await db.query<{ marks: number }>("select count(*) as marks from outbox group by tx");
    expect(Math.max(...deps.rows.map(({ marks }) => marks))).toBeLessThanOrEqual(2001);
    const [event, id] =
      path === "permissions.deleteRole" ? ["role.delete", roleId] : ["permission.delete", permissionId];
    const audited = (await t.audit()).filter((row) => row.event === event && row.targets[0]?.id === id);
    expect(audited).toHaveLength(1);
    expect((await t.call(path, body)).status).toBe(404);
  }
}, 120_000);
