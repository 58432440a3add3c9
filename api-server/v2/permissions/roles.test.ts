import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
  await api.data("permissions.createPermission", { name: "Read documents", slug: "documents.read" });
});
afterAll(() => api.close());

const kindOf = (reply: Reply): string => reply.body.error.type.split("/").at(-1);
const auditOf = async (id: string) => (await api.audit()).filter(({ targets }) => targets.some((one) => one.id === id));
let count = 0;
const unique = (name: string): string => `${name}${++count}`;
const createRole = async (body: object = {}): Promise<string> =>
  (await api.data("permissions.createRole", { name: unique("role"), ...body })).roleId;

describe("createRole", () => {
  test("createRole creates a role, its permissions and links, with audit entries under one correlation id", async () => {
    await api.data("permissions.createPermission", { name: "Known", slug: "Known.Slug" });
    const roleId = await createRole({ name: "Editor", permissions: ["b.new", "known.slug", "a.new", "B.NEW"] });
    const role = await api.data("permissions.getRole", { role: "editor" });
    expect(role).toEqual({
      id: roleId,
      name: "Editor",
      permissions: [
        { id: expect.any(String), name: "Known", slug: "Known.Slug" },
        { id: expect.any(String), name: "a.new", slug: "a.new" },
        { id: expect.any(String), name: "b.new", slug: "b.new" },
      ],
    });
    const rows = await api.audit();
    const correlationId = rows.find(
      ({ event, targets }) => event === "role.create" && targets[0]?.id === roleId,
    )?.correlation_id;
    expect(correlationId).toMatch(/^cor_/);
    expect(
      rows
        .filter((row) => row.correlation_id === correlationId)
        .map(({ event }) => event)
        .sort(),
    ).toEqual([
      "authorization.connect_role_and_permission",
      "authorization.connect_role_and_permission",
      "authorization.connect_role_and_permission",
      "permission.create",
      "permission.create",
      "role.create",
    ]);
  });

  test("created role omits an empty description and an empty permission list", async () => {
    const roleId = await createRole({ name: "Bare", description: "", permissions: [] });
    expect(await api.data("permissions.getRole", { role: roleId })).toEqual({ id: roleId, name: "Bare" });
  });

  test("createRole requires a case-insensitively unique name, and creates nothing if it fails", async () => {
    await createRole({ name: "Ünique Ä" });
    const reply = await api.call("permissions.createRole", { name: "ünique ä", permissions: ["left.behind"] });
    expect(reply.status).toBe(409);
    expect(kindOf(reply)).toBe("role_already_exists");
    const { rowCount } = await api.deps.db.query("select from permissions where slug = 'left.behind'");
    expect(rowCount).toBe(0);
  });

  test("createRole succeeds for only one of 100 concurrent calls", async () => {
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        api.call("permissions.createRole", { name: i % 2 ? "crowd" : "CROWD", permissions: ["crowd.b", "crowd.a"] }),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(99).fill(409)]);
  });

  test("100 concurrent createRole calls share each new permission", async () => {
    const names = Array.from({ length: 100 }, (_, i) => `sharing${i}`);
    const slugs = ["share.a", "share.b", "share.c"];
    const replies = await Promise.all(
      names.map((name, i) =>
        api.call("permissions.createRole", { name, permissions: i % 2 ? slugs : slugs.toReversed() }),
      ),
    );
    expect(replies.every(({ status }) => status === 200)).toBe(true);
    const { rowCount } = await api.deps.db.query("select from permissions where slug like 'share.%'");
    expect(rowCount).toBe(3);
  });

  test.each([
    { held: [], missing: "rbac.*.create_role", permissions: [] },
    { held: ["create_role"], missing: "rbac.*.add_permission_to_role", permissions: ["documents.read"] },
    { held: ["create_role", "add_permission_to_role"], missing: "rbac.*.create_permission", permissions: ["new.slug"] },
  ])("createRole without $missing gets 403 even if the name exists", async ({ held, missing, permissions }) => {
    await api.call("permissions.createRole", { name: "taken" });
    const rootKey = await api.rootKey(["rbac.*.read_role", ...held.map((action) => `rbac.*.${action}`)]);
    const reply = await api.call("permissions.createRole", { name: "taken", permissions }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain(missing);
  });

  test("createRole needs create_permission only for new slugs", async () => {
    const adding = await api.rootKey(["rbac.*.create_role", "rbac.*.add_permission_to_role"]);
    await api.data(
      "permissions.createRole",
      { name: unique("r"), permissions: ["documents.read"] },
      { rootKey: adding },
    );
    const bare = await api.rootKey(["rbac.*.create_role"]);
    await api.data("permissions.createRole", { name: unique("r"), permissions: [] }, { rootKey: bare });
  });

  test.each([
    { field: "name", value: "" },
    { field: "name", value: "n".repeat(129) },
    { field: "description", value: "d".repeat(513) },
    { field: "permissions", value: null },
    { field: "permissions[0]", value: [""], at: "permissions" },
    { field: "permissions[1]", value: ["a", "a b"], at: "permissions" },
  ])("createRole rejects the value $value of $field", async ({ field, value, at }) => {
    const reply = await api.call("permissions.createRole", { name: unique("r"), [at ?? field]: value });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
  });

  test("createRole accepts any name of 128 characters", async () => {
    await createRole({ name: "ß *".repeat(43).slice(0, 128) });
  });
});

describe("getRole", () => {
  test("getRole accepts id or case-insensitive name and prefers the id", async () => {
    const roleId = await createRole({ name: "Reader" });
    const named = await createRole({ name: roleId });
    expect((await api.data("permissions.getRole", { role: "rEADER" })).id).toBe(roleId);
    expect((await api.data("permissions.getRole", { role: roleId })).id).toBe(roleId);
    expect((await api.data("permissions.getRole", { role: named })).name).toBe(roleId);
  });
});

describe("updateRole", () => {
  test("updateRole changes only given fields, and null or empty text clears the description", async () => {
    const roleId = await createRole({ name: "Before", description: "old" });
    await api.data("permissions.updateRole", { role: "before", name: "After" });
    expect(await api.data("permissions.getRole", { role: roleId })).toEqual({
      id: roleId,
      name: "After",
      description: "old",
    });
    await api.data("permissions.updateRole", { role: roleId, description: "new" });
    expect(await api.data("permissions.getRole", { role: roleId })).toMatchObject({ description: "new" });
    await api.data("permissions.updateRole", { role: roleId, description: null });
    expect(await api.data("permissions.getRole", { role: roleId })).toEqual({ id: roleId, name: "After" });
    await api.data("permissions.updateRole", { role: roleId, description: "" });
    await api.data("permissions.updateRole", { role: roleId });
    expect((await auditOf(roleId)).filter(({ event }) => event === "role.update")).toHaveLength(3);
  });

  test("updateRole with another role's name gets 409, but can change the case of the role's own name", async () => {
    await createRole({ name: "Occupied" });
    const roleId = await createRole({ name: "Free" });
    const reply = await api.call("permissions.updateRole", { role: roleId, name: "occupied" });
    expect(reply.status).toBe(409);
    expect(kindOf(reply)).toBe("role_already_exists");
    expect((await api.call("permissions.updateRole", { role: roleId, name: "FREE" })).status).toBe(200);
  });
});

describe("setRolePermissions", () => {
  test("setRolePermissions replaces all permissions and writes only differences", async () => {
    const roleId = await createRole({ name: "Set", permissions: ["keep", "drop"] });
    const reply = await api.call("permissions.setRolePermissions", { roleId, permissions: ["z.new", "KEEP", "keep"] });
    const { data, meta } = reply.body;
    expect(data.map(({ slug }: { slug: string }) => slug)).toEqual(["keep", "z.new"]);
    const added = (await api.audit()).filter(({ request_id }) => request_id === meta.requestId);
    expect(added.map(({ event }) => event).sort()).toEqual([
      "authorization.connect_role_and_permission",
      "authorization.disconnect_role_and_permissions",
      "permission.create",
    ]);
    expect(new Set(added.map(({ correlation_id }) => correlation_id)).size).toBe(1);
    const count = (await api.audit()).length;
    expect(await api.data("permissions.setRolePermissions", { roleId, permissions: ["keep", "z.new"] })).toEqual(data);
    expect(await api.audit()).toHaveLength(count);
    expect(await api.data("permissions.setRolePermissions", { roleId, permissions: [] })).toEqual([]);
    expect(await api.data("permissions.getRole", { role: roleId })).toEqual({ id: roleId, name: "Set" });
  });

  test("setRolePermissions accepts only a role id", async () => {
    await createRole({ name: "ByName" });
    const reply = await api.call("permissions.setRolePermissions", { roleId: "ByName", permissions: [] });
    expect(kindOf(reply)).toBe("role_not_found");
  });

  test("setRolePermissions checks for 403, then 404, then the permission create_permission", async () => {
    const missing = { roleId: "role_missing", permissions: ["brand.new"] };
    for (const action of ["add_permission_to_role", "remove_permission_from_role"]) {
      const reply = await api.call("permissions.setRolePermissions", missing, {
        rootKey: await api.rootKey([`rbac.*.${action}`]),
      });
      expect(reply.status).toBe(403);
    }
    const rootKey = await api.rootKey(["rbac.*.add_permission_to_role", "rbac.*.remove_permission_from_role"]);
    expect((await api.call("permissions.setRolePermissions", missing, { rootKey })).status).toBe(404);
    const roleId = await createRole();
    const body = { roleId, permissions: ["brand.new"] };
    const reply = await api.call("permissions.setRolePermissions", body, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain("rbac.*.create_permission");
  });

  test("concurrent setRolePermissions calls are serialized", async () => {
    const roleId = await createRole();
    const sets = Array.from({ length: 20 }, (_, i) => [`race.${i}a`, `race.${i}b`]);
    await Promise.all(sets.map((permissions) => api.data("permissions.setRolePermissions", { roleId, permissions })));
    const role = await api.data("permissions.getRole", { role: roleId });
    expect(sets).toContainEqual(role.permissions.map(({ slug }: { slug: string }) => slug));
  });

  test.each([
    { field: "roleId", value: "ab" },
    { field: "roleId", value: "r".repeat(256) },
    { field: "roleId", value: "role x" },
    { field: "permissions", value: undefined },
  ])("setRolePermissions rejects the value $value of $field", async ({ field, value }) => {
    const reply = await api.call("permissions.setRolePermissions", {
      roleId: "role_1",
      permissions: [],
      [field]: value,
    });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
  });
});

describe("deleteRole", () => {
  test("deleteRole deletes the role permanently, removes it from keys and frees the name", async () => {
    const { apiId } = await api.data("apis.createApi", { name: "orders" });
    const roleId = await createRole({ name: "Doomed", permissions: ["doomed.slug"] });
    const { keyId, key } = await api.data("keys.createKey", { apiId, roles: ["doomed"] });
    const verify = () => api.data("keys.verifyKey", { key, permissions: "doomed.slug" });
    expect(await verify()).toMatchObject({ code: "VALID" });
    expect(await api.data("permissions.deleteRole", { role: "DOOMED" })).toEqual({});
    expect(await verify()).toMatchObject({ code: "INSUFFICIENT_PERMISSIONS" });
    expect(await api.data("keys.getKey", { keyId })).not.toHaveProperty("roles");
    expect((await api.call("permissions.deleteRole", { role: roleId })).status).toBe(404);
    expect(await createRole({ name: "Doomed" })).not.toBe(roleId);
    expect((await auditOf(roleId)).map(({ event }) => event)).toContain("role.delete");
  });
});

test("deleteRole with onlyIfUnused rejects a role in use and returns the number of its live keys", async () => {
  const roleId = await createRole({ name: "Held", permissions: ["held.read"] });
  const { apiId } = await api.data("apis.createApi", { name: "held" });
  const keys = await Promise.all(
    [1, 2].map(async () => (await api.data("keys.createKey", { apiId, roles: ["Held"] })).keyId),
  );
  const deleteIt = () => api.call("permissions.deleteRole", { role: "held", onlyIfUnused: true });
  const refused = await deleteIt();
  expect(refused.status).toBe(412);
  expect(refused.body.error.detail).toBe(`2 keys have the role ${roleId}, and would lose it.`);
  expect((await api.data("permissions.getRole", { role: roleId })).id).toBe(roleId);
  await api.data("keys.deleteKey", { keyId: keys[0] });
  expect((await deleteIt()).body.error.detail).toContain("1 key has the role");
  await api.data("keys.deleteKey", { keyId: keys[1] });
  expect((await deleteIt()).status).toBe(200);
});

test.each(["permissions.getRole", "permissions.deleteRole", "permissions.updateRole"])(
  "%s rejects a role identifier of 0 or 129 characters",
  async (path) => {
    for (const role of ["", "r".repeat(129)]) expect((await api.call(path, { role })).status).toBe(400);
  },
);

test.each(["permissions.createRole", "permissions.setRolePermissions"])("%s accepts 1,000 slugs", async (path) => {
  const permissions = Array.from({ length: 1000 }, (_, i) => `bulk.${i}`);
  const body = path.endsWith("createRole")
    ? { name: "Bulk" }
    : { roleId: (await api.data("permissions.getRole", { role: "Bulk" })).id };
  expect((await api.call(path, { ...body, permissions: [...permissions, "bulk.1000"] })).status).toBe(400);
  expect((await api.call(path, { ...body, permissions })).status).toBe(200);
  expect((await api.data("permissions.getRole", { role: "Bulk" })).permissions).toHaveLength(1000);
});
