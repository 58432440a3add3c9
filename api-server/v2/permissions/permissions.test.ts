import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockPermission } from "../../store/permissions.ts";
import { lockRoleById } from "../../store/roles.ts";
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
const auditOf = async (id: string) =>
  (await t.audit()).filter(({ targets }) => targets.some((target) => target.id === id)).map(({ event }) => event);

describe("getPermission", () => {
  test("by id or by slug in any case; where both fit the id wins", async () => {
    const id = await create({ slug: "Read.Me", description: "All of it" });
    const expected = { id, name: "Some name", slug: "Read.Me", description: "All of it" };
    expect(await t.data("permissions.getPermission", { permission: id })).toEqual(expected);
    expect(await t.data("permissions.getPermission", { permission: "rEAD.mE" })).toEqual(expected);
    const disguised = await create({ slug: id });
    expect((await t.data("permissions.getPermission", { permission: id })).id).toBe(id);
    expect((await t.data("permissions.getPermission", { permission: disguised })).slug).toBe(id);
  });

  test("leaves out an empty description", async () => {
    const permission = await create({ slug: "plain", description: "" });
    const expected = { id: permission, name: "Some name", slug: "plain" };
    expect(await t.data("permissions.getPermission", { permission })).toEqual(expected);
  });
});

describe("updatePermission", () => {
  test("changes what is given and keeps the slug; null and the empty text remove the description", async () => {
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
    expect(events.filter((event) => event === "permission.update")).toHaveLength(3);
  });

  test.each([
    { field: "name", value: "" },
    { field: "name", value: "n".repeat(513) },
    { field: "name", value: null },
    { field: "description", value: "d".repeat(513) },
    { field: "slug", value: "other" },
  ])("refuses $field $value", async ({ field, value }) => {
    const reply = await t.call("permissions.updatePermission", { permission: "perm_nobody", [field]: value });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
  });
});

test("a key is given a role and a permission while they are being changed, and does not wait for that", async () => {
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
  test("is for good: keys and roles lose it in the very next verification, and its slug is free", async () => {
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
    expect(await auditOf(id)).toContain("permission.delete");
  });

  test("marks each key and role that had it as changed, for the pods to hear", async () => {
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

  test("of several who delete one at the same time, one does", async () => {
    const permission = await create();
    const calls = Array.from({ length: 6 }, () => t.call("permissions.deletePermission", { permission }));
    expect((await Promise.all(calls)).map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404, 404]);
  });
});

test("a role or permission of 7,000 keys is deleted in parts, and every one of them is marked as changed", async () => {
  const { db } = t.deps;
  const { roleId } = await t.data("permissions.createRole", { name: "Everybody" });
  const permissionId = await create({ slug: "everybody" });
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
    const parts = await db.query<{ marks: number }>("select count(*) as marks from outbox group by tx");
    expect(Math.max(...parts.rows.map(({ marks }) => marks))).toBeLessThanOrEqual(2001);
    const [event, id] =
      path === "permissions.deleteRole" ? ["role.delete", roleId] : ["permission.delete", permissionId];
    const audited = (await t.audit()).filter((row) => row.event === event && row.targets[0]?.id === id);
    expect(audited).toHaveLength(1);
    expect((await t.call(path, body)).status).toBe(404);
  }
}, 120_000);

describe.each([
  { path: "permissions.listPermissions", create, idStart: "perm_" },
  {
    path: "permissions.listRoles",
    create: async ({ slug, ...body }: { slug?: string; name?: string; description?: string }, options?: CallOptions) =>
      (await t.data("permissions.createRole", { name: unique("role"), ...body }, options)).roleId as string,
    idStart: "role_",
  },
])("$path", ({ path, create: createOne, idStart }) => {
  const list = (body: object, options: CallOptions) => t.data(path, body, options);
  const namesOf = async (search: string, options: CallOptions): Promise<string[]> =>
    (await list({ search }, options)).map(({ name }: { name: string }) => name).sort();

  test("pages through all of the workspace in the order of the ids", async () => {
    const options = await t.makeWorkspace();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await createOne({ name: `n${i}` }, options));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await t.call(path, { limit: 2, cursor }, options);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      ({ cursor } = body.pagination);
      expect(body.pagination.hasMore).toBe(cursor !== undefined);
    } while (cursor !== undefined);
    const { rows } = await t.deps.db.query("select id from unnest($1::text[]) as made (id) order by id", [ids]);
    expect(seen).toEqual(rows.map(({ id }) => id));
    expect(await list({ cursor: "zzz" }, options)).toEqual([]);
    expect(await list({ cursor: "" }, options)).toHaveLength(5);
  });

  test("searches in all texts, whatever the case, and takes every character as it is", async () => {
    const options = await t.makeWorkspace();
    const id = await createOne({ name: "Café Owners", description: "100% of\\them" }, options);
    await createOne({ name: "under_score", description: "DESCRIBED" }, options);
    await createOne({ name: "underXscore" }, options);
    for (const [search, found] of Object.entries({
      "CAFÉ o": ["Café Owners"],
      "100% o": ["Café Owners"],
      "f\\t": ["Café Owners"],
      "1%f": [],
      r_s: ["under_score"],
      " described ": ["under_score"],
      [id.slice(idStart.length - 1).toUpperCase()]: ["Café Owners"],
      "": ["Café Owners", "underXscore", "under_score"],
    })) {
      expect([search, await namesOf(search, options)]).toEqual([search, found]);
    }
    const first = await t.call(path, { search: "under", limit: 1 }, options);
    const rest = await t.call(path, { search: "under", limit: 1, cursor: first.body.pagination.cursor }, options);
    expect(new Set([...first.body.data, ...rest.body.data].map(({ name }) => name))).toEqual(
      new Set(["under_score", "underXscore"]),
    );
    expect(await namesOf("under", await t.makeWorkspace())).toEqual([]);
  });

  test.each([
    { body: { limit: 100 }, status: 200 },
    { body: { limit: 0 }, status: 400 },
    { body: { limit: 101 }, status: 400 },
    { body: { cursor: "c".repeat(1024) }, status: 200 },
    { body: { cursor: "c".repeat(1025) }, status: 400 },
    { body: { search: "s".repeat(256) }, status: 200 },
    { body: { search: "s".repeat(257) }, status: 400 },
    { body: { nope: 1 }, status: 400 },
  ])("takes $body: $status", async ({ body, status }) => {
    expect((await t.call(path, body)).status).toBe(status);
  });
});

test("listPermissions searches in slugs too", async () => {
  const options = await t.makeWorkspace();
  const id = await create({ name: "Name", slug: "documents.Read" }, options);
  const found = await t.data("permissions.listPermissions", { search: "S.READ" }, options);
  expect(found).toEqual([{ id, name: "Name", slug: "documents.Read" }]);
});

test("listRoles shows each role as getRole does", async () => {
  const options = await t.makeWorkspace();
  for (const [name, permissions] of Object.entries({ a: ["z", "y"], b: ["y"], c: [] })) {
    await t.data("permissions.createRole", { name, permissions, description: name === "b" ? "second" : "" }, options);
  }
  const roles = await t.data("permissions.listRoles", {}, options);
  expect(roles).toHaveLength(3);
  for (const role of roles) expect(role).toEqual(await t.data("permissions.getRole", { role: role.id }, options));
});

describe("what all of them share", () => {
  const cases = [
    { action: "read_permission", path: "permissions.getPermission", body: { permission: "nobody" } },
    { action: "read_permission", path: "permissions.listPermissions", body: {} },
    { action: "update_permission", path: "permissions.updatePermission", body: { permission: "nobody" } },
    { action: "delete_permission", path: "permissions.deletePermission", body: { permission: "nobody" } },
    { action: "read_role", path: "permissions.listRoles", body: {} },
  ];

  test.each(cases)("$path says 403 first", async ({ action, path, body }) => {
    const others = cases.filter((one) => one.action !== action).map((one) => `rbac.*.${one.action}`);
    const reply = await t.call(path, body, { rootKey: await t.rootKey(others) });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain(`rbac.*.${action}`);
  });

  test.each(cases.filter(({ body }) => "permission" in body))(
    "$path says the same of a missing and of a foreign permission",
    async ({ path }) => {
      const { rootKey } = await t.makeWorkspace();
      const permission = await create();
      const ask = async (): Promise<string> => {
        const reply = await t.call(path, { permission }, { rootKey });
        expect(kindOf(reply)).toBe("permission_not_found");
        return JSON.stringify(reply.body.error);
      };
      const foreign = await ask();
      await t.data("permissions.deletePermission", { permission });
      expect(await ask()).toBe(foreign);
    },
  );

  test.each(cases.filter(({ body }) => "permission" in body))("$path bounds what names it", async ({ path }) => {
    for (const permission of ["", "p".repeat(129), "a b", null, 1]) {
      expect((await t.call(path, { permission })).status).toBe(400);
    }
    expect((await t.call(path, { permission: "p".repeat(128) })).status).toBe(404);
  });

  test.each(["permissions.createRole", "permissions.setRolePermissions"])("%s takes 1,000 slugs", async (path) => {
    const permissions = Array.from({ length: 1000 }, (_, i) => `bulk.${i}`);
    const body = path.endsWith("createRole")
      ? { name: "Bulk" }
      : { roleId: (await t.data("permissions.getRole", { role: "Bulk" })).id };
    expect((await t.call(path, { ...body, permissions: [...permissions, "bulk.1000"] })).status).toBe(400);
    expect((await t.call(path, { ...body, permissions })).status).toBe(200);
    expect((await t.data("permissions.getRole", { role: "Bulk" })).permissions).toHaveLength(1000);
  });
});
