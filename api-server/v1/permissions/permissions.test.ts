import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";
import { ROWS_MAX } from "./schemas.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

describe("permissions.createPermission", () => {
  test("v1 permissions.createPermission uses the name as slug by default", async () => {
    const { permissionId } = await t.data("v1/permissions.createPermission", { name: "docs.read", description: "" });
    const shown = { id: permissionId, name: "docs.read", slug: "docs.read" };
    expect(await t.data("permissions.getPermission", { permission: "docs.read" })).toEqual(shown);
    expect(await t.data("v1/permissions.getPermission", { permissionId })).toEqual(shown);
    const [row] = (await t.audit()).filter(({ targets }) => targets.some(({ id }) => id === permissionId));
    expect(row?.event).toBe("permission.create");
  });

  test("v1 permissions.createPermission requires a case-insensitively unique slug", async () => {
    await t.data("v1/permissions.createPermission", { name: "Taken", slug: "taken.slug" });
    const reply = await t.call("v1/permissions.createPermission", { name: "Other", slug: "TAKEN.slug" });
    expect([reply.status, reply.body.error.code]).toEqual([409, "CONFLICT"]);
  });

  test.each([
    { body: { name: "ab" }, status: 400 },
    { body: { name: "abc" }, status: 200 },
    { body: { name: "with space" }, status: 400 },
    { body: { name: "docs.*" }, status: 400 },
    { body: { name: "x".repeat(129) }, status: 400 },
    { body: { name: "y".repeat(128) }, status: 200 },
    { body: { name: "z".repeat(256), slug: "z.slug" }, status: 200 },
    { body: { name: "z".repeat(257), slug: "z.slug2" }, status: 400 },
    { body: { name: "described.1", description: "no" }, status: 400 },
    { body: { name: "described.2", description: "yes" }, status: 200 },
    { body: { name: "described.3", description: "\n\n\n" }, status: 200 },
    { body: { name: "described.4", description: "x".repeat(257) }, status: 400 },
  ])("v1 permissions.createPermission with $body returns $status", async ({ body, status }) => {
    expect((await t.call("v1/permissions.createPermission", body)).status).toBe(status);
  });
});

describe.each([
  { noun: "Permission", idField: "permissionId", body: (name: string) => ({ name, slug: name }) },
  { noun: "Role", idField: "roleId", body: (name: string) => ({ name }) },
])("a $noun", ({ noun, idField, body }) => {
  const create = async (name: string): Promise<string> =>
    (await t.data(`v1/permissions.create${noun}`, body(name)))[idField];

  test("v1 permission or role can be read and deleted only by id", async () => {
    const id = await create(`by.id.${noun}`);
    // The slug, or name, of one is the id of another.
    const named = await create(id);
    expect((await t.data(`v1/permissions.get${noun}`, { [idField]: id })).id).toBe(id);
    const byName = await t.call(`v1/permissions.get${noun}`, { [idField]: `by.id.${noun}` });
    expect([byName.status, byName.body.error.code]).toEqual([404, "NOT_FOUND"]);
    expect(await t.data(`v1/permissions.delete${noun}`, { [idField]: id })).toEqual({});
    // Now only the name of the other is like this.
    expect((await t.call(`v1/permissions.delete${noun}`, { [idField]: id })).status).toBe(404);
    expect((await t.call(`v1/permissions.get${noun}`, { [idField]: id })).status).toBe(404);
    expect((await t.data(`v1/permissions.get${noun}`, { [idField]: named })).id).toBe(named);
  });

  test("v1 deletion of a managed permission or role is rejected with the name of its manifest", async () => {
    const manager = `cluster/Kind/space/managed-${noun.toLowerCase()}`;
    const name = `managed.${noun}`;
    const v2body = noun === "Role" ? { name } : { name, slug: name };
    const made = await t.data(`permissions.create${noun}`, v2body, { headers: { "Postern-Manager": manager } });
    const reply = await t.call(`v1/permissions.delete${noun}`, { [idField]: made[idField] });
    expect([reply.status, reply.body.error.code]).toEqual([409, "CONFLICT"]);
    expect(reply.body.error.message).toContain(manager);
  });

  test("v1 permission or role of another workspace gets 404 and is not listed", async () => {
    const { rootKey } = await t.makeWorkspace();
    const id = await create(`foreign.${noun}`);
    expect((await t.call(`v1/permissions.get${noun}`, { [idField]: id }, { rootKey })).status).toBe(404);
    expect((await t.call(`v1/permissions.delete${noun}`, { [idField]: id }, { rootKey })).status).toBe(404);
    expect(await t.data(`v1/permissions.list${noun}s`, {}, { rootKey })).toEqual([]);
    expect((await t.data(`v1/permissions.get${noun}`, { [idField]: id })).id).toBe(id);
  });

  test("v1 permission and role lists return all entries, ordered by id, or an error if there are too many", async () => {
    const { id: workspaceId, rootKey } = await t.makeWorkspace();
    const table = noun === "Role" ? "roles" : "permissions";
    const columns = noun === "Role" ? "name" : "name, slug";
    const insert = (from: number, to: number) =>
      t.deps.db.query(
        `insert into ${table} (id, workspace_id, ${columns}, created_at)
         select 'x_' || md5('${noun}' || n), $1, 'n' || n${noun === "Role" ? "" : ", 'n' || n"}, 1
           from generate_series($2::int, $3::int) n`,
        [workspaceId, from, to],
      );
    await insert(1, ROWS_MAX);
    const all: { id: string; name: string }[] = await t.data(`v1/permissions.list${noun}s`, {}, { rootKey });
    expect(all).toHaveLength(ROWS_MAX);
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted());
    expect(new Set(all.map(({ name }) => name)).size).toBe(ROWS_MAX);
    await insert(ROWS_MAX + 1, ROWS_MAX + 1);
    const reply = await t.call(`v1/permissions.list${noun}s`, {}, { rootKey });
    expect([reply.status, reply.body.error.code]).toEqual([412, "PRECONDITION_FAILED"]);
    expect(reply.body.error.message).toContain(`permissions.list${noun}s`);
  });
});

test("v1 deleteRole removes the role from its keys immediately", async () => {
  const { roleId } = await t.data("v1/permissions.createRole", { name: "editor of v1", description: "May edit." });
  await t.data("permissions.setRolePermissions", { roleId, permissions: ["texts.edit"] });
  const { apiId } = await t.data("apis.createApi", { name: "texts" });
  const { key } = await t.data("keys.createKey", { apiId, roles: ["editor of v1"] });
  const ask = { key, permissions: "texts.edit" };
  expect((await t.data("keys.verifyKey", ask)).code).toBe("VALID");
  expect(await t.data("v1/permissions.getRole", { roleId })).toEqual({
    id: roleId,
    name: "editor of v1",
    description: "May edit.",
  });
  await t.data("v1/permissions.deleteRole", { roleId });
  expect((await t.data("keys.verifyKey", ask)).code).toBe("INSUFFICIENT_PERMISSIONS");
});

test.each([
  { name: "ab", status: 400 },
  { name: "a b", status: 200 },
  { name: "ü".repeat(128), status: 200 },
  { name: "x".repeat(129), status: 400 },
])("v1 createRole with the name $name returns $status", async ({ name, status }) => {
  expect((await t.call("v1/permissions.createRole", { name })).status).toBe(status);
});
