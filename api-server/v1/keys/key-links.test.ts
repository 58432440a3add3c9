import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

/* What connects permissions and roles with a key, and disconnects them. */

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

interface Sort {
  readonly noun: "permissions" | "roles";
  readonly one: "permission" | "role";
  readonly One: "Permission" | "Role";
  readonly idField: string;
}
const SORTS: readonly Sort[] = [
  { noun: "permissions", one: "permission", One: "Permission", idField: "permissionId" },
  { noun: "roles", one: "role", One: "Role", idField: "roleId" },
];

let count = 0;
const newName = (): string => `thing.${count++}`;

const create = async ({ One, idField }: Sort, name = newName()): Promise<{ id: string; name: string }> => ({
  id: (await t.data(`v1/permissions.create${One}`, { name }))[idField],
  name,
});
const newKey = async (body: object = {}): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, ...body });
const call = (kind: string, { noun, One }: Sort, keyId: string, items: readonly object[], rootKey?: string) =>
  t.call(`v1/keys.${kind}${One}s`, { keyId, [noun]: items }, rootKey === undefined ? {} : { rootKey });
const held = async ({ noun }: Sort, keyId: string): Promise<string[]> =>
  (await t.data("keys.getKey", { keyId }))[noun] ?? [];
const names = (reply: { body: { name: string }[] }): string[] => reply.body.map(({ name }) => name);

describe.each(SORTS)("$noun", (sort) => {
  const { noun, one, One } = sort;

  test("v1 add procedures accept ids and case-insensitive names, and return all links of the key", async () => {
    const [first, second, third] = [await create(sort), await create(sort), await create(sort)];
    const { keyId } = await newKey({ [noun]: [first.name] });
    const items = [
      { id: second.id, name: "is not looked at" },
      { name: third.name.toUpperCase() },
      { name: first.name },
    ];
    const reply = await call("add", sort, keyId, items);
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual([first, second, third]);
    expect(await held(sort, keyId)).toEqual([first.name, second.name, third.name]);
  });

  test("v1 key link calls create a missing item only with `create: true`", async () => {
    const { keyId } = await newKey();
    const [made, missing] = [newName(), newName()];
    const refused = await call("add", sort, keyId, [{ name: made, create: true }, { name: missing }]);
    expect([refused.status, refused.body.error.code]).toEqual([404, "NOT_FOUND"]);
    expect(refused.body.error.message).toContain(missing);
    expect(await held(sort, keyId)).toEqual([]);
    // Nothing of a refused call stays.
    expect((await call("add", sort, keyId, [{ name: made }])).status).toBe(404);

    expect(names(await call("add", sort, keyId, [{ name: made, create: true }]))).toEqual([made]);
    // One that is there is not made again.
    expect(names(await call("set", sort, keyId, [{ name: made.toUpperCase(), create: true }]))).toEqual([made]);
    const events = (await t.audit()).filter(({ targets }) => targets.some(({ name }) => name === made));
    expect(events.map(({ event }) => event).filter((event) => event.endsWith(".create"))).toEqual([`${one}.create`]);
  });

  test("v1 set procedures replace all links, and audit only the removed and added links", async () => {
    const [stays, goes, comes] = [await create(sort), await create(sort), await create(sort)];
    const { keyId } = await newKey({ [noun]: [stays.name, goes.name] });
    const reply = await call("set", sort, keyId, [{ id: comes.id }, { id: stays.id }, { name: stays.name }]);
    expect(reply.body).toEqual([stays, comes]);
    const ofKey = (await t.audit()).filter(({ targets }) => targets.some(({ id }) => id === keyId));
    const links = ofKey.map(({ event, targets }) => `${event} ${targets.find(({ type }) => type === one)?.name}`);
    const connect = `authorization.connect_${one}_and_key`;
    expect(links.filter((link) => link.startsWith("authorization.")).toSorted()).toEqual(
      [
        ...[stays, goes, comes].map(({ name }) => `${connect} ${name}`),
        `authorization.disconnect_${one}_and_key ${goes.name}`,
      ].toSorted(),
    );
  });

  test("v1 remove procedures unlink the listed items, and ignore unknown or unlinked items", async () => {
    const [first, second, stays] = [await create(sort), await create(sort), await create(sort)];
    const stranger = await create(sort);
    const { keyId } = await newKey({ [noun]: [first.name, second.name, stays.name] });
    const items = [{ name: first.name }, { id: second.id }, { id: stranger.id }, { name: "nothing.like.it" }];
    const reply = await call("remove", sort, keyId, [...items, { id: `${one}_none` }]);
    expect([reply.status, reply.body]).toEqual([200, {}]);
    expect(await held(sort, keyId)).toEqual([stays.name]);
  });

  test("v1 key link calls require the create permission only if they create an item", async () => {
    const { keyId } = await newKey();
    const there = await create(sort);
    const rootKey = await t.rootKey([`rbac.*.add_${one}_to_key`]);
    expect((await call("add", sort, keyId, [{ name: there.name, create: true }], rootKey)).status).toBe(200);
    const items = [{ name: newName(), create: true }];
    const [added, replaced] = [
      await call("add", sort, keyId, items, rootKey),
      await call("set", sort, keyId, items, rootKey),
    ];
    expect([added.status, added.body.error.code]).toEqual([403, "UNAUTHORIZED"]);
    expect([replaced.status, replaced.body.error.code]).toEqual([403, "INSUFFICIENT_PERMISSIONS"]);
    // What adds is enough to drop.
    expect((await call("set", sort, keyId, [{ id: (await create(sort)).id }], rootKey)).status).toBe(200);
    expect(await held(sort, keyId)).not.toContain(there.name);
  });

  test("v1 key link calls with unnamed items, or with empty or oversized lists, get 400 before authentication", async () => {
    const { keyId } = await newKey();
    for (const [kind, items, place] of [
      ["add", [{ name: "abc" }, {}], `${noun}.1.id`],
      ["set", [{ create: true }], `${noun}.0.id`],
      ["remove", [], noun],
      ["add", [], noun],
      ["set", [], noun],
      ["add", [{ id: "ab" }], `${noun}.0.id`],
      ["add", [{ name: "" }], `${noun}.0.name`],
      ["add", [{ name: "x".repeat(129), create: true }], `${noun}.0.name`],
      ["set", Array.from({ length: noun === "roles" ? 101 : 1001 }, () => ({ name: "abc" })), noun],
    ] as const) {
      const reply = await call(kind, sort, keyId, items, "no root key");
      expect([kind, reply.status, reply.body.error.code]).toEqual([kind, 400, "BAD_REQUEST"]);
      expect(reply.body.error.message).toMatch(new RegExp(`^${place.replaceAll(".", "\\.")}: `));
    }
  });

  test("v1 key link calls for a deleted key or a key of another workspace get 404 and create nothing", async () => {
    const { rootKey } = await t.makeWorkspace();
    const { keyId } = await newKey();
    const name = newName();
    for (const kind of ["add", "set", "remove"]) {
      const reply = await call(kind, sort, keyId, [{ name, create: true }], rootKey);
      expect([reply.status, reply.body.error.code]).toEqual([404, "NOT_FOUND"]);
    }
    await t.data("keys.deleteKey", { keyId });
    expect((await call("add", sort, keyId, [{ name, create: true }])).status).toBe(404);
    for (const own of [rootKey, t.workspace.rootKey]) {
      const listed = await t.data(`v1/permissions.list${One}s`, {}, { rootKey: own });
      expect(listed.some((each: { name: string }) => each.name === name)).toBe(false);
    }
  });

  test("v1 key link calls with ids or names of another workspace get 404", async () => {
    const other = await t.makeWorkspace();
    const theirs = newName();
    const made = await t.data(`v1/permissions.create${One}`, { name: theirs }, other);
    const { keyId } = await newKey();
    for (const item of [{ id: made[sort.idField] }, { name: theirs }]) {
      expect((await call("add", sort, keyId, [item])).status).toBe(404);
      expect((await call("set", sort, keyId, [item])).status).toBe(404);
      expect((await call("remove", sort, keyId, [item])).status).toBe(200);
    }
  });

  test("20 concurrent v1 key link calls create each new item only once", async () => {
    const { keyId } = await newKey();
    const items = [newName(), newName(), newName()].map((name) => ({ name, create: true }));
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, at) => call("add", sort, keyId, at % 2 ? items : items.toReversed())),
    );
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(await held(sort, keyId)).toEqual(items.map(({ name }) => name));
  });
});

test("v1 setPermissions and removePermissions accept a slug, which takes precedence over the name", async () => {
  const slug = newName();
  const { permissionId } = await t.data("v1/permissions.createPermission", { name: "Shown.name", slug });
  const { keyId } = await newKey();
  const reply = await t.call("v1/keys.setPermissions", { keyId, permissions: [{ slug, name: "no.such" }] });
  expect(reply.body).toEqual([{ id: permissionId, name: "Shown.name" }]);
  await t.data("v1/keys.removePermissions", { keyId, permissions: [{ slug, name: "no.such" }] });
  expect(await held(SORTS[0] as Sort, keyId)).toEqual([]);
});

test("changed v1 key links apply to the next verification, and permissions from roles remain", async () => {
  await t.data("permissions.createRole", { name: "reader", permissions: ["docs.read"] });
  const { keyId, key } = await newKey({ roles: ["reader"] });
  const code = async (permissions: string) => (await t.data("keys.verifyKey", { key, permissions })).code;
  await t.data("v1/keys.addPermissions", {
    keyId,
    permissions: [{ name: "docs.read" }, { name: "docs.write", create: true }],
  });
  expect(await code("docs.write")).toBe("VALID");
  await t.data("v1/keys.removePermissions", { keyId, permissions: [{ name: "docs.read" }, { name: "docs.write" }] });
  expect([await code("docs.write"), await code("docs.read")]).toEqual(["INSUFFICIENT_PERMISSIONS", "VALID"]);
  await t.data("v1/keys.removeRoles", { keyId, roles: [{ name: "READER" }] });
  expect(await code("docs.read")).toBe("INSUFFICIENT_PERMISSIONS");
});
