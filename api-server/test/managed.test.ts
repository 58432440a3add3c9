import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findOwn, MANAGED_KINDS, type ManagedKind } from "../db/managed-objects.ts";
import { findRemaining } from "../db/orphaned-objects.ts";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";

/* Tests the rules of api-v2.md section 24.1 for every kind of managed object. */

let api: TestApp;
let apiId: string;
beforeAll(async () => {
  api = await buildTestApp();
  apiId = (await api.data("apis.createApi", { name: "orders" })).apiId;
  await api.data("ratelimit.createNamespace", { name: "overrides" });
});
afterAll(() => api.close());

let count = 0;
const unique = (): string => `x${++count}`;
/** Returns a manager without objects. */
const aManager = (): string => `main/Some.Kind/shop/${unique()}`;
const as = (manager: string | undefined, flags: object = {}) => ({
  headers: { ...(manager === undefined ? {} : { "postern-manager": manager }), ...flags },
});
const ADOPT = { "postern-adopt": "true" };
const RELEASE = { "postern-release": "true" };
const kindOf = (reply: Reply): string | undefined => reply.body.error?.type.split("/").at(-1);

interface Request {
  readonly path: string;
  readonly body: object;
}
interface Made {
  readonly id: string;
  readonly name: string;
}
interface Case {
  readonly title: string;
  /** Kind as named by managed.getObject. */
  readonly kind: ManagedKind;
  readonly create: (name: string) => Request;
  /** Response field with the id of the created object. */
  readonly idField: string;
  /** `undefined` if no procedure changes objects of this kind. */
  readonly change?: (made: Made) => Request;
  readonly remove?: (made: Made) => Request;
  /** Whether a create changes an existing unmanaged object of the same name. */
  readonly createIsChange?: true;
}

const CASES: Case[] = [
  {
    title: "an API",
    kind: "api",
    create: (name) => ({ path: "apis.createApi", body: { name: `api ${name}` } }),
    idField: "apiId",
    change: ({ id }) => ({ path: "apis.updateApi", body: { apiId: id, name: `api ${unique()}` } }),
    remove: ({ id }) => ({ path: "apis.deleteApi", body: { apiId: id } }),
  },
  {
    title: "a role and its permissions",
    kind: "role",
    create: (name) => ({ path: "permissions.createRole", body: { name } }),
    idField: "roleId",
    change: ({ id }) => ({ path: "permissions.setRolePermissions", body: { roleId: id, permissions: [unique()] } }),
    remove: ({ id }) => ({ path: "permissions.deleteRole", body: { role: id } }),
  },
  {
    title: "a role and its description",
    kind: "role",
    create: (name) => ({ path: "permissions.createRole", body: { name } }),
    idField: "roleId",
    change: ({ id }) => ({ path: "permissions.updateRole", body: { role: id, description: unique() } }),
    remove: ({ id }) => ({ path: "permissions.deleteRole", body: { role: id } }),
  },
  {
    title: "a permission",
    kind: "permission",
    create: (name) => ({ path: "permissions.createPermission", body: { name, slug: name } }),
    idField: "permissionId",
    change: ({ id }) => ({ path: "permissions.updatePermission", body: { permission: id, description: unique() } }),
    remove: ({ id }) => ({ path: "permissions.deletePermission", body: { permission: id } }),
  },
  {
    title: "a namespace",
    kind: "namespace",
    create: (name) => ({ path: "ratelimit.createNamespace", body: { name } }),
    idField: "namespaceId",
    remove: ({ id }) => ({ path: "ratelimit.deleteNamespace", body: { namespace: id } }),
  },
  {
    title: "an override",
    kind: "override",
    create: (name) => ({
      path: "ratelimit.setOverride",
      body: { namespace: "overrides", identifier: name, limit: 1, duration: 1000 },
    }),
    idField: "overrideId",
    change: ({ name }) => ({
      path: "ratelimit.setOverride",
      body: { namespace: "overrides", identifier: name, limit: ++count, duration: 1000 },
    }),
    remove: ({ name }) => ({ path: "ratelimit.deleteOverride", body: { namespace: "overrides", identifier: name } }),
    createIsChange: true,
  },
  {
    title: "a key",
    kind: "key",
    create: (name) => ({ path: "keys.createKey", body: { apiId, name } }),
    idField: "keyId",
    change: ({ id }) => ({ path: "keys.updateKey", body: { keyId: id, meta: { changed: unique() } } }),
    remove: ({ id }) => ({ path: "keys.deleteKey", body: { keyId: id } }),
  },
];

const send = ({ path, body }: Request, options?: object): Promise<Reply> => api.call(path, body, options);
/** Returns the row of a manager's object; `undefined` if there is none, and for a key, of which a manager may have several. */
const ownOf = async (kind: ManagedKind, manager: string) =>
  kind === "key" ? undefined : await findOwn(api.deps.db, kind, { workspaceId: api.workspace.id, manager });
const managerOf = async (kind: string, id: string): Promise<string | undefined> =>
  (await api.data("managed.getObject", { kind, id })).manager;
const make = async ({ create, idField }: Case, manager?: string): Promise<Made> => {
  const name = unique();
  const { path, body } = create(name);
  return { id: (await api.data(path, body, as(manager)))[idField], name };
};

test("managed tests cover every kind with a procedure that respects the manager header", () => {
  // Only managed.applyObject and managed.deleteObject change policies. policies.test.ts tests these.
  const kinds = MANAGED_KINDS.filter((kind) => kind !== "policy");
  expect([...new Set(CASES.map(({ kind }) => kind))].sort()).toEqual(kinds.sort());
});

describe.each(CASES)("$title", (one) => {
  const { kind, create, idField, change, remove, createIsChange } = one;

  test("created object is managed if the call has the manager header, otherwise unmanaged", async () => {
    const manager = aManager();
    expect(await managerOf(kind, (await make(one, manager)).id)).toBe(manager);
    expect(await managerOf(kind, (await make(one)).id)).toBeUndefined();
  });

  test("audit entry of a managed object's creation names the manager", async () => {
    const manager = aManager();
    const { id } = await make(one, manager);
    const [row] = (await api.audit()).filter(({ targets }) => targets.some((target) => target.id === id));
    expect(row?.actor.meta).toEqual({ manager });
  });

  test("repeated creation by one manager returns the existing object", async () => {
    const manager = aManager();
    const { id, name } = await make(one, manager);
    const rows = (await api.audit()).length;
    const again = await send(create(name), as(manager));
    if (kind === "key") {
      // The plaintext is not stored, so a key cannot be returned twice.
      expect(again.status).toBe(409);
      expect(kindOf(again)).toBe("managed_exists");
      expect(again.body.error.detail).toContain(id);
    } else {
      expect(again.body.data[idField]).toBe(id);
      const renamed = unique();
      const other = await send(create(renamed), as(manager));
      expect(other.body.data[idField]).toBe(id);
      // No object has the other name.
      expect((await send(create(renamed), as(aManager()))).body.data[idField]).not.toBe(id);
    }
    expect((await api.audit()).length).toBe(kind === "key" ? rows : rows + 1);
  });

  if (kind !== "key")
    test("20 concurrent creations by one manager create one object", async () => {
      const manager = aManager();
      const name = unique();
      const replies = await Promise.all(Array.from({ length: 20 }, () => send(create(name), as(manager))));
      expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
      expect(new Set(replies.map((reply) => reply.body.data[idField])).size).toBe(1);
    });

  for (const [what, request] of Object.entries({ change, delete: remove })) {
    if (request === undefined) continue;
    test(`${what} of a managed object by another caller gets 409 with the name of the manager`, async () => {
      const manager = aManager();
      const made = await make(one, manager);
      const rows = (await api.audit()).length;
      for (const options of [
        undefined,
        as(aManager()),
        as(aManager(), ADOPT),
        as(aManager(), RELEASE),
        as(undefined, RELEASE),
      ]) {
        const reply = await send(request(made), options);
        expect(reply.status).toBe(409);
        expect(kindOf(reply)).toBe("managed_by_manifest");
        expect(reply.body.error.title).toBe("Conflicting Resource");
        expect(reply.body.error.detail).toContain(manager);
      }
      expect(await api.audit()).toHaveLength(rows);
      expect(await managerOf(kind, made.id)).toBe(manager);
    });

    test(`${what} of a managed object by its manager succeeds`, async () => {
      const manager = aManager();
      const made = await make(one, manager);
      expect((await send(request(made), as(manager))).status).toBe(200);
      if (what === "change") expect(await managerOf(kind, made.id)).toBe(manager);
    });

    test(`${what} of an unmanaged object succeeds with and without the manager header`, async () => {
      for (const options of [undefined, as(aManager()), as(undefined, ADOPT)]) {
        const made = await make(one);
        expect((await send(request(made), options)).status).toBe(200);
        if (what === "change") expect(await managerOf(kind, made.id)).toBeUndefined();
      }
    });

    test(`${what} with the release header makes a managed object unmanaged`, async () => {
      const manager = aManager();
      const made = await make(one, manager);
      expect((await send(request(made), as(manager, RELEASE))).status).toBe(200);
      expect(await managerOf(kind, made.id)).toBeUndefined();
      // Any caller may now change the object, and its former manager may create another.
      expect((await send(request(made))).status).toBe(200);
      expect((await make(one, manager)).id).not.toBe(made.id);
    });
  }

  if (remove !== undefined)
    test("delete of an unmanaged object with the release header changes nothing", async () => {
      const made = await make(one);
      const rows = (await api.audit()).length;
      expect((await send((remove as NonNullable<typeof remove>)(made), as(aManager(), RELEASE))).status).toBe(200);
      expect(await api.audit()).toHaveLength(rows);
      expect(await managerOf(kind, made.id)).toBeUndefined();
    });

  if (change !== undefined)
    test("change with the adopt header makes an unmanaged object managed", async () => {
      const made = await make(one);
      const manager = aManager();
      expect((await send((change as NonNullable<typeof change>)(made), as(manager, ADOPT))).status).toBe(200);
      expect(await managerOf(kind, made.id)).toBe(manager);
    });

  if (change !== undefined && kind !== "key")
    test("manager cannot adopt a second object of one kind", async () => {
      const manager = aManager();
      await make(one, manager);
      const second = await make(one);
      const reply = await send((change as NonNullable<typeof change>)(second), as(manager, ADOPT));
      expect(reply.status).toBe(409);
      expect(kindOf(reply)).toBe("managed_exists");
      expect(await managerOf(kind, second.id)).toBeUndefined();
    });

  if (remove !== undefined)
    test("manager can create another object after deleting its first", async () => {
      const manager = aManager();
      const made = await make(one, manager);
      await send((remove as NonNullable<typeof remove>)(made), as(manager));
      const next = await make(one, manager);
      expect(next.id).not.toBe(made.id);
      expect(await managerOf(kind, next.id)).toBe(manager);
    });

  if (remove !== undefined)
    test("released object remembers its last manager until it is managed or deleted", async () => {
      const manager = aManager();
      const made = await make(one, manager);
      const read = () => api.data("managed.getObject", { kind, id: made.id });
      const leftBy = (workspaceId = api.workspace.id) =>
        kind === "key" ? undefined : findRemaining(api.deps.db, kind, { workspaceId, manager });
      expect(await read()).not.toHaveProperty("lastManager");
      const { path, body } = (remove as NonNullable<typeof remove>)(made);
      await api.data(path, body, as(manager, RELEASE));
      expect(await read()).toEqual({
        kind,
        id: made.id,
        lastManager: manager,
        ...(kind === "override" ? { async: false } : {}),
      });
      if (kind !== "key") {
        expect(await leftBy()).toBe(made.id);
        expect(await ownOf(kind, manager)).toBeUndefined();
        const other = await api.makeWorkspace();
        expect(await leftBy(other.id)).toBeUndefined();
      }
      if (change === undefined) return;
      const next = aManager();
      const changed = change(made);
      await api.data(changed.path, changed.body, as(next, ADOPT));
      expect(await managerOf(kind, made.id)).toBe(next);
      expect(await read()).not.toHaveProperty("lastManager");
      expect(await leftBy()).toBeUndefined();
      await api.data(path, body, as(next, RELEASE));
      expect((await read()).lastManager).toBe(next);
      expect(await leftBy()).toBeUndefined();
    });

  if (createIsChange)
    test("update of an unmanaged object without the adopt header leaves it unmanaged", async () => {
      const { id, name } = await make(one);
      expect((await send(create(name), as(aManager()))).body.data[idField]).toBe(id);
      expect(await managerOf(kind, id)).toBeUndefined();
    });

  test("managed.getObject checks for 404 before 403, and gives the same response for missing objects and objects of other workspaces", async () => {
    const { id } = await make(one, aManager());
    const other = await api.makeWorkspace();
    const ask = async (asked: string, rootKey: string) => {
      const reply = await api.call("managed.getObject", { kind, id: asked }, { rootKey });
      expect(reply.status).toBe(404);
      return JSON.stringify(reply.body.error).replaceAll(asked, "ID");
    };
    const rootKey = await api.rootKey(["identity.*.read_identity"]);
    expect(await ask(id, other.rootKey)).toBe(await ask("missing_1", rootKey));
    const reply = await api.call("managed.getObject", { kind, id }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toMatch(/read_(api|role|permission|namespace|override|key)/);
  });
});

describe("a namespace with an existing name", () => {
  const createNamespace = (name: string, options?: object) => api.call("ratelimit.createNamespace", { name }, options);

  test("createNamespace by a manager adopts an unmanaged namespace with the same name", async () => {
    const name = unique();
    const { namespaceId } = (await createNamespace(name)).body.data;
    const manager = aManager();
    expect(kindOf(await createNamespace(name, as(manager)))).toBe("ratelimit_namespace_already_exists");
    const adopted = await createNamespace(name, as(manager, ADOPT));
    expect(adopted.status).toBe(200);
    expect(adopted.body.data.namespaceId).toBe(namespaceId);
    expect(await managerOf("namespace", namespaceId)).toBe(manager);
  });

  test("createNamespace by a manager is rejected if another manager has the namespace", async () => {
    const name = unique();
    const manager = aManager();
    await createNamespace(name, as(manager));
    const reply = await createNamespace(name, as(aManager(), ADOPT));
    expect(kindOf(reply)).toBe("ratelimit_namespace_already_exists");
    expect(reply.body.error.detail).toContain(manager);
  });

  test("ratelimit.limit ignores the manager header", async () => {
    const namespace = unique();
    const body = { namespace, identifier: "i", limit: 1, duration: 1000 };
    await api.data("ratelimit.limit", body, as(aManager()));
    const { id } = await api.data("ratelimit.getNamespace", { namespace });
    expect(await managerOf("namespace", id)).toBeUndefined();
  });
});

test("permissions created with a managed role are unmanaged", async () => {
  const slug = unique();
  const body = { name: unique(), permissions: [slug] };
  const { roleId } = await api.data("permissions.createRole", body, as(aManager()));
  const [permission] = (await api.data("permissions.getRole", { role: roleId })).permissions;
  expect(await managerOf("permission", permission.id)).toBeUndefined();
});

test.each([
  { kind: "role", id: "" },
  { kind: "identity", id: "id_1" },
  { kind: "role", id: "r".repeat(256) },
])("managed.getObject rejects kind $kind with id $id", async (body) => {
  expect((await api.call("managed.getObject", body)).status).toBe(400);
});

test("20 concurrent creations of unnamed keys by one manager create one key", async () => {
  const manager = aManager();
  const create = () => api.call("keys.createKey", { apiId }, as(manager));
  // Opens a database connection for each call, so that all start at nearly the same time.
  await Promise.all(Array.from({ length: 20 }, () => api.call("keys.createKey", { apiId })));
  const statuses = (await Promise.all(Array.from({ length: 20 }, create))).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([200, ...Array(19).fill(409)]);
});
