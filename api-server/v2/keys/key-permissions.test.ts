import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

/* keys.addPermissions, keys.removePermissions and keys.setPermissions. */

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
  await t.data("permissions.createRole", { name: "editor", permissions: ["role.write"] });
  await t.data("permissions.createPermission", { name: "Known", slug: "Known.Slug", description: "told" });
});
afterAll(() => t.close());

const add = "keys.addPermissions";
const remove = "keys.removePermissions";
const set = "keys.setPermissions";
const ALL = [add, remove, set];
const EVERY_GRANT = ["api.*.update_key", "rbac.*.add_permission_to_key", "rbac.*.remove_permission_from_key"];

const create = async (permissions: string[] = [], body: object = {}): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, permissions, ...body });
const slugsOf = (data: ReadonlyArray<{ slug: string }>): string[] => data.map(({ slug }) => slug);
const change = async (path: string, keyId: string, permissions: string[]): Promise<string[]> =>
  slugsOf(await t.data(path, { keyId, permissions }));
const read = (keyId: string) => t.data("keys.getKey", { keyId });
const auditOf = async (reply: Reply) =>
  (await t.audit()).filter(({ request_id }) => request_id === reply.body.meta.requestId);
const isKnown = async (slug: string) =>
  (await t.deps.db.query("select from permissions where slug = $1", [slug])).rowCount === 1;

describe("returns the resulting direct permissions by slug", () => {
  test.each([
    { name: "add", path: add, given: ["b.read", "a.read"], after: ["a.read", "b.read", "held.one", "held.two"] },
    { name: "add what is held", path: add, given: ["held.one", "HELD.ONE"], after: ["held.one", "held.two"] },
    { name: "add in another case", path: add, given: ["known.SLUG"], after: ["Known.Slug", "held.one", "held.two"] },
    { name: "remove", path: remove, given: ["held.two"], after: ["held.one"] },
    { name: "remove in another case", path: remove, given: ["HELD.two", "held.TWO"], after: ["held.one"] },
    { name: "remove what is not held", path: remove, given: ["known.slug"], after: ["held.one", "held.two"] },
    { name: "remove what a role grants", path: remove, given: ["role.write"], after: ["held.one", "held.two"] },
    { name: "set", path: set, given: ["held.two", "fresh.set"], after: ["fresh.set", "held.two"] },
    { name: "set none", path: set, given: [], after: [] },
  ])("key permission change applies to the next verification: $name", async ({ path, given, after }) => {
    const { keyId, key } = await create(["held.one", "held.two"], { roles: ["editor"] });
    await t.data("keys.verifyKey", { key });
    expect(await change(path, keyId, given)).toEqual(after);
    const effective = [...after, "role.write"].sort();
    expect((await read(keyId)).permissions).toEqual(effective);
    expect((await t.data("keys.verifyKey", { key })).permissions).toEqual(effective);
    // Again, with the same result.
    expect(await change(path, keyId, given)).toEqual(after);
  });

  test("key permissions treat wildcards and id-like slugs as plain slugs", async () => {
    const { keyId, key } = await create();
    expect(await change(add, keyId, ["documents.*", "perm_nobody"])).toEqual(["documents.*", "perm_nobody"]);
    const verified = await t.data("keys.verifyKey", { key, permissions: "documents.read AND perm_nobody" });
    expect(verified.code).toBe("VALID");
  });

  test("key permission response has id, name, slug and description", async () => {
    const { keyId } = await create();
    const data = await t.data(add, { keyId, permissions: ["known.slug", "unknown.slug"] });
    expect(data).toEqual([
      { id: expect.stringMatching(/^perm_/), name: "Known", slug: "Known.Slug", description: "told" },
      { id: expect.stringMatching(/^perm_/), name: "unknown.slug", slug: "unknown.slug" },
    ]);
  });
});

test("removePermissions accepts ids and prefers an id over an equal slug", async () => {
  const { keyId } = await create(["by.id", "stays.here"]);
  const [byId] = await t.data(set, { keyId, permissions: ["by.id"] });
  await t.data("permissions.createPermission", { name: "Confusing", slug: byId.id });
  expect(await change(set, keyId, ["by.id", byId.id])).toEqual(["by.id", byId.id]);
  expect(await change(remove, keyId, [byId.id])).toEqual([byId.id]);
  expect(await isKnown("by.id")).toBe(true);
});

describe("the audit log", () => {
  const events = async (reply: Reply) => (await auditOf(reply)).map(({ event }) => event).sort();

  test("key permission change writes audit entries for each link and new permission under one correlation id", async () => {
    const { keyId } = await create(["log.kept", "log.gone"]);
    const added = await t.call(add, { keyId, permissions: ["log.kept", "log.new"] });
    expect(await events(added)).toEqual(["authorization.connect_permission_and_key", "permission.create"]);
    const [connected] = await auditOf(added);
    const slug = "log.new";
    const id = added.body.data.find((one: { slug: string }) => one.slug === slug).id;
    expect(connected).toMatchObject({
      correlation_id: expect.stringMatching(/^cor_/),
      targets: [
        { type: "key", id: keyId },
        { type: "permission", id, name: slug },
      ],
    });
    const replaced = await t.call(set, { keyId, permissions: ["log.kept", "log.newer"] });
    expect(await events(replaced)).toEqual([
      "authorization.connect_permission_and_key",
      "authorization.disconnect_permission_and_key",
      "authorization.disconnect_permission_and_key",
      "permission.create",
    ]);
    expect(new Set((await auditOf(replaced)).map(({ correlation_id }) => correlation_id)).size).toBe(1);
    const removed = await t.call(remove, { keyId, permissions: ["log.kept", "log.gone"] });
    expect(await events(removed)).toEqual(["authorization.disconnect_permission_and_key"]);
    expect((await auditOf(removed))[0]).toMatchObject({
      correlation_id: null,
      targets: [{ id: keyId }, { type: "permission" }],
    });
  });

  test.each([
    { path: add, given: ["same.b"] },
    { path: remove, given: ["known.slug"] },
    { path: set, given: ["same.b", "same.A"] },
  ])("$path without changes writes no audit entry and leaves the key untouched", async ({ path, given }) => {
    const { keyId } = await create(["same.a", "same.b"]);
    const before = await read(keyId);
    expect(await auditOf(await t.call(path, { keyId, permissions: given }))).toEqual([]);
    expect(await read(keyId)).toEqual(before);
  });

  test("rejected key permission change writes nothing", async () => {
    const { keyId } = await create(["kept.slug"]);
    const reply = await t.call(remove, { keyId, permissions: ["kept.slug", "never.made"] });
    expect(reply.body.error).toMatchObject({ status: 404, type: "https://docs.test/errors/permission_not_found" });
    expect(reply.body.error.detail).toContain("never.made");
    expect(await auditOf(reply)).toEqual([]);
    expect((await read(keyId)).permissions).toEqual(["kept.slug"]);
  });
});

test("key permission change sets updatedAt of the key", async () => {
  const { keyId } = await create();
  expect(await read(keyId)).not.toHaveProperty("updatedAt");
  await change(add, keyId, ["moves.it"]);
  expect((await read(keyId)).updatedAt).toEqual(expect.any(Number));
});

describe("rejections", () => {
  test.each(ALL)("%s checks for 404 (key), 403 and 404 (permission) in this order", async (path) => {
    const rootKey = await t.rootKey(["api.*.read_key"]);
    const { keyId } = await create();
    const permissions = ["refused.slug"];
    const missing = await t.call(path, { keyId: "key_missing", permissions }, { rootKey });
    expect(missing.body.error).toMatchObject({ status: 404, type: "https://docs.test/errors/key_not_found" });
    const refused = await t.call(path, { keyId, permissions }, { rootKey });
    expect(refused.status).toBe(403);
    expect(refused.body.error.detail).toContain(`api.*.update_key or api.${apiId}.update_key`);
    const stranger = await t.makeWorkspace();
    expect((await t.call(path, { keyId, permissions }, { rootKey: stranger.rootKey })).status).toBe(404);
    expect(await isKnown("refused.slug")).toBe(false);
  });

  test.each([
    { path: add, missing: "rbac.*.add_permission_to_key" },
    { path: remove, missing: "rbac.*.remove_permission_from_key" },
    { path: set, missing: "rbac.*.add_permission_to_key" },
    { path: set, missing: "rbac.*.remove_permission_from_key" },
  ])("$path requires $missing even without changes", async ({ path, missing }) => {
    const { keyId } = await create(["role.write"]);
    const rootKey = await t.rootKey(EVERY_GRANT.filter((grant) => grant !== missing));
    const reply = await t.call(path, { keyId, permissions: ["role.write"] }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain(missing);
  });

  test.each([add, set])("%s requires create_permission only for a new slug", async (path) => {
    const { keyId } = await create(["kept.slug"]);
    const rootKey = await t.rootKey(EVERY_GRANT);
    const reply = await t.call(path, { keyId, permissions: ["known.slug", "unmade.slug"] }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain("rbac.*.create_permission");
    expect(await isKnown("unmade.slug")).toBe(false);
    expect((await read(keyId)).permissions).toEqual(["kept.slug"]);
    expect((await t.call(path, { keyId, permissions: ["KNOWN.slug"] }, { rootKey })).status).toBe(200);
  });

  test("key permission change cannot use a permission of another workspace", async () => {
    const stranger = await t.makeWorkspace();
    const own = { rootKey: stranger.rootKey };
    const theirs = await t.data("permissions.createPermission", { name: "n", slug: "their.slug" }, own);
    const { keyId } = await create();
    for (const one of ["their.slug", theirs.permissionId]) {
      expect((await t.call(remove, { keyId, permissions: [one] })).status).toBe(404);
    }
  });

  test.each(ALL)("%s on a managed key is allowed only for its manager, until the manager releases it", async (path) => {
    const headers = { "Postern-Manager": `prod/Key/shop/${path}` };
    const body = { apiId, permissions: ["managed.slug"] };
    const { keyId } = await t.data("keys.createKey", body, { headers });
    const permissions = path === remove ? ["managed.slug"] : ["role.write"];
    const refused = await t.call(path, { keyId, permissions });
    expect(refused.body.error).toMatchObject({ status: 409, type: "https://docs.test/errors/managed_by_manifest" });
    expect((await read(keyId)).permissions).toEqual(["managed.slug"]);
    const released = await t.call(path, { keyId, permissions }, { headers: { ...headers, "Postern-Release": "true" } });
    expect(released.status).toBe(200);
    expect((await auditOf(released)).map(({ event }) => event)).toContain("key.update");
    expect((await t.call(path, { keyId, permissions })).status).toBe(200);
  });

  test("rejected change of a managed key creates no permission", async () => {
    const headers = { "Postern-Manager": "prod/Key/shop/leaves" };
    const { keyId } = await t.data("keys.createKey", { apiId }, { headers });
    expect((await t.call(add, { keyId, permissions: ["undone.slug"] })).status).toBe(409);
    expect(await isKnown("undone.slug")).toBe(false);
  });

  test("key permission change with the adopt header makes the key managed", async () => {
    const { keyId } = await create(["adopted.slug"]);
    const headers = { "Postern-Manager": "prod/Key/shop/adopted", "Postern-Adopt": "true" };
    const reply = await t.call(add, { keyId, permissions: ["adopted.slug"] }, { headers });
    expect((await auditOf(reply)).map(({ event }) => event)).toEqual(["key.update"]);
    expect((await t.call(add, { keyId, permissions: ["adopted.slug"] })).status).toBe(409);
  });

  const slugs = (count: number): string[] => Array.from({ length: count }, (_, i) => `many.${i}`);
  test.each([
    { path: add, permissions: [], status: 400 },
    { path: remove, permissions: [], status: 400 },
    { path: set, permissions: [], status: 200 },
    { path: add, permissions: slugs(1000), status: 200 },
    { path: add, permissions: slugs(1001), status: 400 },
    { path: set, permissions: slugs(1000), status: 200 },
    { path: set, permissions: slugs(1001), status: 400 },
    { path: remove, permissions: Array(1000).fill("role.write"), status: 200 },
    { path: remove, permissions: Array(1001).fill("role.write"), status: 400 },
    ...ALL.flatMap((path) => [
      { path, permissions: [""], status: 400 },
      { path, permissions: ["s".repeat(129)], status: 400 },
      { path, permissions: ["a b"], status: 400 },
      { path, permissions: null, status: 400 },
      { path, permissions: undefined, status: 400 },
      { path, permissions: "a.slug", status: 400 },
    ]),
    { path: add, permissions: ["s".repeat(128), "s"], status: 200 },
    { path: remove, permissions: ["r".repeat(128)], status: 404 },
  ])("$path responds $status to a request with this permission list", async ({ path, permissions, status }) => {
    const { keyId } = await create();
    expect((await t.call(path, { keyId, permissions })).status).toBe(status);
  });

  test.each(ALL)("%s rejects unknown members", async (path) => {
    const { keyId } = await create();
    const reply = await t.call(path, { keyId, permissions: ["role.write"], roles: [] });
    expect(reply.body.error.errors[0].location).toBe("body.roles");
  });
});

describe("concurrent calls", () => {
  test("concurrent permission additions and removals of one key lose no change", async () => {
    const names = Array.from({ length: 10 }, (_, i) => `race.${i}`);
    const held = Array.from({ length: 10 }, (_, i) => `held.${i}`);
    const { keyId } = await create(held);
    await Promise.all([
      ...names.map((slug) => change(add, keyId, [slug])),
      ...held.map((slug) => change(remove, keyId, [slug])),
    ]);
    expect((await read(keyId)).permissions).toEqual(names);
  });

  test("concurrent key permission changes end in a serializable state", async () => {
    for (let round = 0; round < 10; round++) {
      const { keyId } = await create(["x.one"]);
      const replies = await Promise.all([change(set, keyId, ["x.two"]), change(add, keyId, ["x.three"])]);
      const left = (await read(keyId)).permissions;
      const setFirst = { replies: [["x.two"], ["x.three", "x.two"]], left: ["x.three", "x.two"] };
      const addFirst = { replies: [["x.two"], ["x.one", "x.three"]], left: ["x.two"] };
      expect([setFirst, addFirst]).toContainEqual({ replies, left });
    }
  });
});
