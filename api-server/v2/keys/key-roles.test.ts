import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

/* keys.addRoles, keys.removeRoles and keys.setRoles. */

let t: TestApp;
let apiId: string;
const ids: Record<string, string> = {};
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
  for (const [name, permissions] of Object.entries({
    Admin: ["a.all", "shared"],
    Editor: ["e.write", "shared"],
    Bare: [],
  })) {
    ids[name] = (await t.data("permissions.createRole", { name, permissions })).roleId;
  }
});
afterAll(() => t.close());

const add = "keys.addRoles";
const remove = "keys.removeRoles";
const set = "keys.setRoles";
const ALL = [add, remove, set];

const create = async (roles: string[] = [], body: object = {}): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, roles, ...body });
const change = async (path: string, keyId: string, roles: string[]): Promise<string[]> =>
  (await t.data(path, { keyId, roles })).map(({ name }: { name: string }) => name);
const read = (keyId: string) => t.data("keys.getKey", { keyId });
const auditOf = async (reply: Reply) =>
  (await t.audit()).filter(({ request_id }) => request_id === reply.body.meta.requestId);

describe("returns the resulting roles by name", () => {
  test.each([
    { name: "add", path: add, given: ["Bare", "Admin"], after: ["Admin", "Bare", "Editor"] },
    { name: "add what is held", path: add, given: ["editor", "EDITOR"], after: ["Editor"] },
    { name: "remove", path: remove, given: ["eDITOR"], after: [] },
    { name: "remove what is not held", path: remove, given: ["Admin"], after: ["Editor"] },
    { name: "set", path: set, given: ["admin", "Editor"], after: ["Admin", "Editor"] },
    { name: "set others", path: set, given: ["Bare"], after: ["Bare"] },
    { name: "set none", path: set, given: [], after: [] },
  ])("key role change applies to the next verification: $name", async ({ path, given, after }) => {
    const { keyId, key } = await create(["Editor"], { permissions: ["direct.read"] });
    await t.data("keys.verifyKey", { key });
    expect(await change(path, keyId, given)).toEqual(after);
    const granted = after.flatMap(
      (role) => ({ Admin: ["a.all", "shared"], Editor: ["e.write", "shared"] })[role] ?? [],
    );
    const effective = [...new Set([...granted, "direct.read"])].sort();
    const described = await read(keyId);
    expect(described.roles ?? []).toEqual(after);
    expect(described.permissions).toEqual(effective);
    const verified = await t.data("keys.verifyKey", { key });
    expect([verified.roles ?? [], verified.permissions]).toEqual([after, effective]);
    // Again, with the same result.
    expect(await change(path, keyId, given)).toEqual(after);
  });

  test("key role response includes the slugs of granted permissions, and omits empty fields", async () => {
    const { keyId } = await create();
    expect(await t.data(add, { keyId, roles: ["Editor", "Bare"] })).toEqual([
      { id: ids.Bare, name: "Bare" },
      {
        id: ids.Editor,
        name: "Editor",
        permissions: ["e.write", "shared"].map((slug) => ({
          id: expect.stringMatching(/^perm_/),
          name: slug,
          slug,
        })),
      },
    ]);
  });
});

describe("the audit log", () => {
  test("key role change writes an audit entry for each added and removed link", async () => {
    const { keyId } = await create(["Bare"]);
    const added = await t.call(add, { keyId, roles: ["Bare", "Editor"] });
    expect(await auditOf(added)).toMatchObject([
      {
        event: "authorization.connect_role_and_key",
        correlation_id: null,
        targets: [
          { type: "key", id: keyId },
          { type: "role", id: ids.Editor, name: "Editor" },
        ],
      },
    ]);
    const replaced = await auditOf(await t.call(set, { keyId, roles: ["Editor", "Admin"] }));
    expect(replaced.map(({ event, targets }) => [event, targets[1]?.name])).toEqual([
      ["authorization.connect_role_and_key", "Admin"],
      ["authorization.disconnect_role_and_key", "Bare"],
    ]);
    expect(new Set(replaced.map(({ correlation_id }) => correlation_id)).size).toBe(1);
    expect(await auditOf(await t.call(remove, { keyId, roles: ["Admin", "Bare"] }))).toMatchObject([
      { event: "authorization.disconnect_role_and_key", targets: [{ id: keyId }, { id: ids.Admin }] },
    ]);
  });

  test.each([
    { path: add, given: ["EDITOR"] },
    { path: remove, given: ["Admin"] },
    { path: set, given: ["editor", "Editor"] },
  ])("$path without changes writes no audit entry and leaves the key unchanged", async ({ path, given }) => {
    const { keyId } = await create(["Editor"]);
    const before = await read(keyId);
    expect(await auditOf(await t.call(path, { keyId, roles: given }))).toEqual([]);
    expect(await read(keyId)).toEqual(before);
  });
});

describe("rejections", () => {
  test.each(ALL)("%s checks for 404 (key), 403 and 404 (role) in this order, without changes", async (path) => {
    const { keyId } = await create(["Editor"]);
    const roles = ["Editor", "Admin", "nobody"];
    const rootKey = await t.rootKey(["api.*.read_key"]);
    const missing = await t.call(path, { keyId: "key_missing", roles }, { rootKey });
    expect(missing.body.error).toMatchObject({ status: 404, type: "https://docs.test/errors/key_not_found" });
    const refused = await t.call(path, { keyId, roles }, { rootKey });
    expect(refused.status).toBe(403);
    expect(refused.body.error.detail).toContain(`api.*.update_key or api.${apiId}.update_key`);
    const reply = await t.call(path, { keyId, roles });
    expect(reply.body.error).toMatchObject({ status: 404, type: "https://docs.test/errors/role_not_found" });
    expect(reply.body.error.detail).toContain("nobody");
    expect((await read(keyId)).roles).toEqual(["Editor"]);
    const stranger = await t.makeWorkspace();
    expect((await t.call(path, { keyId, roles: ["Editor"] }, { rootKey: stranger.rootKey })).status).toBe(404);
  });

  test("addRoles additionally requires add_role_to_key", async () => {
    const { keyId } = await create(["Editor"]);
    const rootKey = await t.rootKey([`api.${apiId}.update_key`]);
    const refused = await t.call(add, { keyId, roles: ["nobody"] }, { rootKey });
    expect(refused.status).toBe(403);
    expect(refused.body.error.detail).toContain("rbac.*.add_role_to_key");
    expect((await t.call(set, { keyId, roles: ["Admin"] }, { rootKey })).status).toBe(200);
    expect((await t.call(remove, { keyId, roles: ["Admin"] }, { rootKey })).status).toBe(200);
    const adding = await t.rootKey([`api.${apiId}.update_key`, "rbac.*.add_role_to_key"]);
    expect((await t.call(add, { keyId, roles: ["Admin"] }, { rootKey: adding })).status).toBe(200);
  });

  test.each(ALL)(
    "%s accepts no role ids, and does not find deleted roles or those of another workspace",
    async (path) => {
      const stranger = await t.makeWorkspace();
      await t.data("permissions.createRole", { name: `theirs ${path}` }, { rootKey: stranger.rootKey });
      const deleted = await t.data("permissions.createRole", { name: `deleted ${path}` });
      await t.data("permissions.deleteRole", { role: deleted.roleId });
      const { keyId } = await create();
      for (const role of [ids.Editor, `theirs ${path}`, `deleted ${path}`]) {
        expect((await t.call(path, { keyId, roles: [role] })).body.error.type).toContain("role_not_found");
      }
    },
  );

  test.each(ALL)("%s on a managed key is allowed only for its manager", async (path) => {
    const headers = { "Postern-Manager": `prod/Key/shop/${path}` };
    const { keyId } = await t.data("keys.createKey", { apiId, roles: ["Editor"] }, { headers });
    const roles = path === remove ? ["Editor"] : ["Admin"];
    const refused = await t.call(path, { keyId, roles });
    expect(refused.body.error).toMatchObject({ status: 409, type: "https://docs.test/errors/managed_by_manifest" });
    expect((await t.call(path, { keyId, roles }, { headers })).status).toBe(200);
    expect((await t.call(path, { keyId, roles })).status).toBe(409);
  });

  const hundred = Array.from({ length: 100 }, () => "Editor");
  test.each([
    { path: add, roles: [], status: 400 },
    { path: remove, roles: [], status: 400 },
    { path: set, roles: [], status: 200 },
    ...ALL.flatMap((path) => [
      { path, roles: hundred, status: 200 },
      { path, roles: [...hundred, "Editor"], status: 400 },
      { path, roles: [""], status: 400 },
      { path, roles: ["r".repeat(128)], status: 404 },
      { path, roles: ["r".repeat(129)], status: 400 },
      { path, roles: null, status: 400 },
      { path, roles: undefined, status: 400 },
    ]),
  ])("$path responds $status to a request with this role list", async ({ path, roles, status }) => {
    const { keyId } = await create();
    expect((await t.call(path, { keyId, roles })).status).toBe(status);
  });

  test.each(ALL)("%s for roles rejects unknown members", async (path) => {
    const { keyId } = await create();
    const reply = await t.call(path, { keyId, roles: ["Editor"], permissions: [] });
    expect(reply.body.error.errors[0].location).toBe("body.permissions");
  });
});

test("concurrent key role changes end in a serializable state", async () => {
  for (let round = 0; round < 10; round++) {
    const { keyId } = await create(["Bare"]);
    const replies = await Promise.all([change(set, keyId, ["Editor"]), change(add, keyId, ["Admin"])]);
    const left = (await read(keyId)).roles;
    const setFirst = { replies: [["Editor"], ["Admin", "Editor"]], left: ["Admin", "Editor"] };
    const addFirst = { replies: [["Editor"], ["Admin", "Bare"]], left: ["Editor"] };
    expect([setFirst, addFirst]).toContainEqual({ replies, left });
  }
});

test("role that is deleted during key role changes is removed, and the changes do not fail", async () => {
  for (let round = 0; round < 10; round++) {
    const name = `doomed ${round}`;
    const { roleId } = await t.data("permissions.createRole", { name, permissions: ["doomed"] });
    const { keyId } = await create();
    const [added, deleted] = await Promise.all([
      t.call(add, { keyId, roles: [name] }),
      t.call("permissions.deleteRole", { role: roleId }),
    ]);
    expect([200, 404]).toContain(added.status);
    expect(deleted.status).toBe(200);
    expect(await read(keyId)).not.toHaveProperty("roles");
  }
});
