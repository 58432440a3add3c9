import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockPermission } from "../../db/permissions.ts";
import { lockRoleById } from "../../db/roles.ts";
import { buildTestApp, type CallOptions, type Reply, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "orders" }));
});
afterAll(() => t.close());

let made = 0;
const unique = (name: string): string => `${name}${++made}`;
const create = async (body: object = {}, options?: CallOptions): Promise<string> =>
  (await t.data("permissions.createPermission", { name: "Some name", slug: unique("slug."), ...body }, options))
    .permissionId;
const kindOf = (reply: Reply): string => reply.body.error.type.split("/").at(-1);
const auditOf = async (id: string) => (await t.audit()).filter(({ targets }) => targets.some((one) => one.id === id));

describe("createPermission", () => {
  test("createPermission creates one permission with one audit entry", async () => {
    const body = { name: "Read documents", slug: "documents.read", description: "All of them" };
    const { permissionId } = await t.data("permissions.createPermission", body);
    expect(permissionId).toMatch(/^perm_[a-zA-Z0-9]{16}$/);
    expect(await auditOf(permissionId)).toMatchObject([
      { event: "permission.create", targets: [{ type: "permission", id: permissionId, name: "documents.read" }] },
    ]);
    const { roleId } = await t.data("permissions.createRole", {
      name: unique("role"),
      permissions: ["documents.read"],
    });
    expect((await t.data("permissions.getRole", { role: roleId })).permissions).toEqual([
      { id: permissionId, ...body },
    ]);
  });

  test("createPermission requires a case-insensitively unique slug, but no unique name", async () => {
    await t.data("permissions.createPermission", { name: "same", slug: "Case.Slug" });
    const reply = await t.call("permissions.createPermission", { name: "same", slug: "case.slug" });
    expect(reply.status).toBe(409);
    expect(kindOf(reply)).toBe("permission_already_exists");
    expect((await t.call("permissions.createPermission", { name: "same", slug: "another" })).status).toBe(200);
  });

  test("createPermission succeeds for only one of 100 concurrent calls", async () => {
    const replies = await Promise.all(
      Array.from({ length: 100 }, () => t.call("permissions.createPermission", { name: "n", slug: "crowd" })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(99).fill(409)]);
  });

  test("createPermission accepts a slug that another workspace uses", async () => {
    const other = await t.makeWorkspace();
    const body = { name: "n", slug: "shared.slug" };
    await t.data("permissions.createPermission", body);
    expect((await t.call("permissions.createPermission", body, { rootKey: other.rootKey })).status).toBe(200);
  });

  test.each([
    { name: "a name of 512", body: { name: "n".repeat(512) } },
    { name: "a slug of 128", body: { slug: "s".repeat(128) } },
    { name: "a description of 512", body: { description: "d".repeat(512) } },
    { name: "the empty description", body: { description: "" } },
    { name: "every character of a slug", body: { slug: "aZ09_:-.*" } },
  ])("createPermission accepts $name", async ({ body }) => {
    const reply = await t.call("permissions.createPermission", { name: "n", slug: unique("s"), ...body });
    expect(reply.status).toBe(200);
  });

  test.each([
    { field: "name", value: "" },
    { field: "name", value: "n".repeat(513) },
    { field: "slug", value: "" },
    { field: "slug", value: "s".repeat(129) },
    { field: "slug", value: "a b" },
    { field: "slug", value: "a/b" },
    { field: "description", value: "d".repeat(513) },
    { field: "description", value: null },
  ])("createPermission rejects the value $value of $field", async ({ field, value }) => {
    const reply = await t.call("permissions.createPermission", { name: "n", slug: unique("s"), [field]: value });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
  });

  test("createPermission checks for 403 before 409", async () => {
    const reply = await t.call(
      "permissions.createPermission",
      { name: "n", slug: "crowd" },
      { rootKey: await t.rootKey(["rbac.*.create_role"]) },
    );
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain("rbac.*.create_permission");
  });
});

describe("getPermission", () => {
  test("getPermission accepts id or case-insensitive slug and prefers the id", async () => {
    const id = await create({ slug: "Read.Me", description: "All of it" });
    const expected = { id, name: "Some name", slug: "Read.Me", description: "All of it" };
    expect(await t.data("permissions.getPermission", { permission: id })).toEqual(expected);
    expect(await t.data("permissions.getPermission", { permission: "rEAD.mE" })).toEqual(expected);
    const disguised = await create({ slug: id });
    expect((await t.data("permissions.getPermission", { permission: id })).id).toBe(id);
    expect((await t.data("permissions.getPermission", { permission: disguised })).slug).toBe(id);
  });

  test("getPermission omits an empty description", async () => {
    const permission = await create({ slug: "plain", description: "" });
    const expected = { id: permission, name: "Some name", slug: "plain" };
    expect(await t.data("permissions.getPermission", { permission })).toEqual(expected);
  });
});

describe("updatePermission", () => {
  test("updatePermission changes the given fields, keeps the slug and clears a field that is null", async () => {
    const id = await create({ slug: "fixed.slug", description: "old" });
    const read = () => t.data("permissions.getPermission", { permission: id });
    await t.data("permissions.updatePermission", { permission: "FIXED.SLUG", name: "New name" });
    expect(await read()).toEqual({ id, name: "New name", slug: "fixed.slug", description: "old" });
    await t.data("permissions.updatePermission", { permission: id, description: "new" });
    expect(await read()).toMatchObject({ name: "New name", description: "new" });
    await t.data("permissions.updatePermission", { permission: id, description: null });
    expect(await read()).toEqual({ id, name: "New name", slug: "fixed.slug" });
    // Nothing changes, nothing is written.
    await t.data("permissions.updatePermission", { permission: id, description: "" });
    await t.data("permissions.updatePermission", { permission: id });
    const events = await auditOf(id);
    expect(events.filter(({ event }) => event === "permission.update")).toHaveLength(3);
  });

  test.each([
    { field: "name", value: "" },
    { field: "name", value: "n".repeat(513) },
    { field: "name", value: null },
    { field: "description", value: "d".repeat(513) },
    { field: "slug", value: "other" },
  ])("updatePermission rejects the value $value of $field", async ({ field, value }) => {
    const reply = await t.call("permissions.updatePermission", { permission: "perm_nobody", [field]: value });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
  });
});

test("updatePermission does not block assigning the permission to a key", async () => {
  const { roleId } = await t.data("permissions.createRole", { name: "busy.role" });
  const { permissionId } = await t.data("permissions.createPermission", { name: "busy", slug: "busy.permission" });
  const { id: workspaceId } = t.workspace;
  const holder = await t.deps.db.connect();
  try {
    await holder.query("begin");
    await lockRoleById(holder, { workspaceId, roleId });
    await lockPermission(holder, { workspaceId, permission: permissionId });
    await t.data("keys.createKey", { apiId, roles: ["busy.role"], permissions: ["busy.permission"] });
  } finally {
    await holder.query("rollback");
    holder.release();
  }
});

describe("deletePermission", () => {
  test("deletePermission removes the permission from keys and roles immediately and frees the slug", async () => {
    const id = await create({ slug: "doomed" });
    const { roleId } = await t.data("permissions.createRole", { name: "Holder", permissions: ["doomed", "kept"] });
    const direct = await t.data("keys.createKey", { apiId, permissions: ["doomed"] });
    const byRole = await t.data("keys.createKey", { apiId, roles: ["Holder"] });
    const verify = async ({ key }: { key: string }): Promise<string> =>
      (await t.data("keys.verifyKey", { key, permissions: "doomed" })).code;
    expect([await verify(direct), await verify(byRole)]).toEqual(["VALID", "VALID"]);

    expect(await t.data("permissions.deletePermission", { permission: "DOOMED" })).toEqual({});
    expect([await verify(direct), await verify(byRole)]).toEqual(Array(2).fill("INSUFFICIENT_PERMISSIONS"));
    expect(await t.data("keys.getKey", { keyId: direct.keyId })).not.toHaveProperty("permissions");
    const { permissions } = await t.data("permissions.getRole", { role: roleId });
    expect(permissions.map(({ slug }: { slug: string }) => slug)).toEqual(["kept"]);
    expect((await t.call("permissions.deletePermission", { permission: id })).status).toBe(404);
    expect(await create({ slug: "doomed" })).not.toBe(id);
    expect(await verify(direct)).toBe("INSUFFICIENT_PERMISSIONS");
    expect((await auditOf(id)).map(({ event }) => event)).toContain("permission.delete");
  });

  test("deletePermission writes outbox entries for its keys and roles", async () => {
    const id = await create({ slug: "projected" });
    const { roleId } = await t.data("permissions.createRole", { name: unique("role"), permissions: ["projected"] });
    const { keyId } = await t.data("keys.createKey", { apiId, permissions: ["projected"] });
    await t.deps.db.query("delete from outbox");
    await t.data("permissions.deletePermission", { permission: id });
    const { rows } = await t.deps.db.query("select o.kind, o.id from outbox o order by o.kind");
    expect(rows).toEqual([
      { kind: "keyId", id: keyId },
      { kind: "role", id: roleId },
    ]);
  });

  test("deletePermission succeeds for only one of several concurrent calls", async () => {
    const permission = await create();
    const calls = Array.from({ length: 6 }, () => t.call("permissions.deletePermission", { permission }));
    expect((await Promise.all(calls)).map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404, 404]);
  });
});

test.each(["permissions.getPermission", "permissions.updatePermission", "permissions.deletePermission"])(
  "%s limits the length of the permission identifier",
  async (path) => {
    for (const permission of ["", "p".repeat(129), "a b", null, 1]) {
      expect((await t.call(path, { permission })).status).toBe(400);
    }
    const unknown = await t.call(path, { permission: "p".repeat(128) });
    expect([unknown.status, kindOf(unknown)]).toEqual([404, "permission_not_found"]);
  },
);
