import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Data, Input, Procedure } from "../../../core/api/procedures.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

/* What the pages of identities, of roles and permissions, and of rate-limit namespaces read. */

const HOUR_MS = 3_600_000;

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

type Item<P extends Procedure> = Data<P> extends readonly (infer One)[] ? One : never;

/** A new workspace, whose lists have what the test makes. */
async function aWorkspace() {
  const { id, rootKey } = await t.makeWorkspace();
  const data = <P extends Procedure>(path: P, body: Input<P>): Promise<Data<P>> => t.data(path, body, { rootKey });
  const call = (path: string, body: object) => t.call(path, body, { rootKey });
  async function pages<P extends Procedure>(path: P, body: Input<P>): Promise<Item<P>[]> {
    const items: Item<P>[] = [];
    let cursor: string | undefined;
    do {
      const reply = await call(path, { ...body, ...(cursor === undefined ? {} : { cursor }) });
      expect(reply.status, JSON.stringify(reply.body)).toBe(200);
      items.push(...reply.body.data);
      cursor = reply.body.pagination.cursor;
    } while (cursor !== undefined);
    return items;
  }
  return { id, data, call, pages };
}

describe("an identity's details", () => {
  test("admin identity details show how much of each limit is used without consuming it", async () => {
    const { data } = await aWorkspace();
    const ratelimits = [
      { name: "requests", limit: 10, duration: HOUR_MS, autoApply: true },
      { name: "exports", limit: 3, duration: 24 * HOUR_MS },
    ];
    const { identityId } = await data("identities.createIdentity", {
      externalId: "acme",
      meta: { plan: "pro" },
      ratelimits,
    });
    const { apiId } = await data("apis.createApi", { name: "orders" });
    const create = (name: string) => data("keys.createKey", { apiId, externalId: "acme", name });
    const [one, two, three] = [await create("one"), await create("two"), await create("three")];
    await data("keys.deleteKey", { keyId: three.keyId });
    for (const { key } of [one, one, two]) await data("keys.verifyKey", { key });
    for (let i = 0; i < 2; i += 1) {
      const details = await data("admin.getIdentityDetails", { identity: "acme" });
      expect(details).toMatchObject({
        identity: { id: identityId, externalId: "acme", meta: { plan: "pro" } },
        keyCount: 2,
        limits: [
          { name: "exports", limit: 3, autoApply: false, current: { used: 0, remaining: 3 } },
          { name: "requests", limit: 10, autoApply: true, current: { used: 3, remaining: 7 } },
        ],
      });
      expect(details.limits[1]?.current?.reset).toBeGreaterThan(details.now - HOUR_MS);
      expect(details.updatedAt).toBeUndefined();
    }
  });
});

describe("roles and permissions", () => {
  test("admin lists of roles and permissions are paged by name and include usage", async () => {
    const { data, pages } = await aWorkspace();
    const names = ["beta", "Alpha", "alpha-2", "delta", "Charlie"];
    for (const name of names) await data("permissions.createRole", { name, permissions: ["docs.read", `own.${name}`] });
    const { apiId } = await data("apis.createApi", { name: "orders" });
    await data("keys.createKey", { apiId, roles: ["beta"], permissions: ["docs.read"] });
    const gone = await data("keys.createKey", { apiId, roles: ["beta"] });
    await data("keys.deleteKey", { keyId: gone.keyId });
    for (const limit of [2, 100]) {
      const roles = await pages("admin.listRoles", { limit });
      expect(roles.map(({ name }) => name.toLowerCase())).toEqual(["alpha", "alpha-2", "beta", "charlie", "delta"]);
      expect(roles[2]).toMatchObject({ name: "beta", keyCount: 1, permissionCount: 2 });
      const roleIds = roles.map(({ id }) => id);
      const rows = await pages("admin.listPermissions", { roleIds: [...roleIds, "role_unknown"], limit });
      expect(
        rows.map(({ slug, granted, roleCount, keyCount }) => [slug.toLowerCase(), granted, roleCount, keyCount]),
      ).toEqual([
        ["docs.read", [0, 1, 2, 3, 4], 5, 1],
        ["own.alpha", [0], 1, 0],
        ["own.alpha-2", [1], 1, 0],
        ["own.beta", [2], 1, 0],
        ["own.charlie", [3], 1, 0],
        ["own.delta", [4], 1, 0],
      ]);
    }
    expect(await pages("admin.listRoles", { search: "PHA" })).toHaveLength(2);
    expect(await pages("admin.listPermissions", { search: "own._" })).toHaveLength(0);
  });

  test("admin matrix of 1,000 permissions and 100 roles fits into two pages", async () => {
    const { id, pages } = await aWorkspace();
    const insert = (text: string) => t.deps.db.query(text, [id]);
    await insert(`insert into roles (id, workspace_id, name, created_at)
                  select 'role_' || md5($1 || i), $1, 'role ' || lpad(i::text, 3, '0'), 1 from generate_series(0, 99) i`);
    await insert(`insert into permissions (id, workspace_id, slug, name, created_at)
                  select 'perm_' || md5($1 || i), $1, 'p.' || lpad(i::text, 4, '0'), 'p', 1 from generate_series(0, 999) i`);
    await insert(`insert into role_permissions (role_id, permission_id, workspace_id)
                  select 'role_' || md5($1 || r), 'perm_' || md5($1 || p), $1
                    from generate_series(0, 99) r, generate_series(0, 999) p where (r + p) % 3 = 0`);
    const roles = await pages("admin.listRoles", {});
    const roleIds = roles.map((role) => role.id);
    const startedMs = performance.now();
    const rows = await pages("admin.listPermissions", { roleIds, limit: 500 });
    expect(performance.now() - startedMs).toBeLessThan(10_000);
    expect(rows).toHaveLength(1000);
    for (const [p, { granted }] of rows.entries()) {
      expect(granted).toEqual([...Array(100).keys()].filter((r) => (r + p) % 3 === 0));
    }
  });

  test("admin role update with an outdated expected state is rejected", async () => {
    const { data, call } = await aWorkspace();
    const { roleId } = await data("permissions.createRole", { name: "editor", permissions: ["a.read", "b.read"] });
    const set = (permissions: string[], expected?: string[]) =>
      call("permissions.setRolePermissions", { roleId, permissions, ...(expected === undefined ? {} : { expected }) });
    // In any order and case.
    expect((await set(["a.read", "c.read"], ["B.read", "a.read"])).status).toBe(200);
    // As the first caller left it, it is not what the second one read.
    const refused = await set(["a.read", "d.read"], ["a.read", "b.read"]);
    expect([refused.status, refused.body.error.type.split("/").at(-1)]).toEqual([409, "role_changed"]);
    const slugs = async () => (await data("permissions.getRole", { role: roleId })).permissions?.map((p) => p.slug);
    expect(await slugs()).toEqual(["a.read", "c.read"]);
    // Nothing of a refused call is left, also no permission that it would have created.
    expect((await call("permissions.getPermission", { permission: "d.read" })).status).toBe(404);
    expect((await set([], ["a.read", "c.read", "a.read"])).status).toBe(200);
    expect((await set(["a.read"], [])).status).toBe(200);
    expect((await set(["b.read"])).status).toBe(200);
  });

  test("one of two concurrent admin role updates is rejected as outdated", async () => {
    const { data, call } = await aWorkspace();
    const { roleId } = await data("permissions.createRole", { name: "raced", permissions: ["a.read"] });
    const save = (slug: string) =>
      call("permissions.setRolePermissions", { roleId, permissions: ["a.read", slug], expected: ["a.read"] });
    const replies = await Promise.all(["b", "c", "d", "e"].map(save));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  });
});

describe("rate limit namespaces and overrides", () => {
  test("admin lists of namespaces and overrides are paged by name and include manifests", async () => {
    const { id, data, pages } = await aWorkspace();
    const names = ["email", "Sms", "push_1", "push%", "日本"];
    for (const name of names) await data("ratelimit.createNamespace", { name });
    const identifiers = ["premium_*", "*", "acme", "Acme", "a*z"];
    for (const [i, identifier] of identifiers.entries()) {
      await data("ratelimit.setOverride", {
        namespace: "email",
        identifier,
        limit: i,
        duration: HOUR_MS,
        async: i === 1,
      });
    }
    await data("ratelimit.deleteOverride", { namespace: "email", identifier: "acme" });
    await t.deps.db.query(
      "update ratelimit_overrides set manager = 'm/K/n/o' where workspace_id = $1 and identifier = '*'",
      [id],
    );
    const namespaces = await pages("admin.listNamespaces", { limit: 2 });
    expect(namespaces.map(({ name }) => name).sort()).toEqual(names.toSorted());
    expect(namespaces.find(({ name }) => name === "email")).toMatchObject({ overrideCount: 4 });
    expect((await pages("admin.listNamespaces", { search: "push%" })).map(({ name }) => name)).toEqual(["push%"]);
    const overrides = await pages("admin.listOverrides", { namespace: "email", limit: 1 });
    expect(overrides.map(({ identifier }) => identifier).sort()).toEqual(["*", "Acme", "a*z", "premium_*"]);
    expect(overrides.find(({ identifier }) => identifier === "*")).toMatchObject({
      async: true,
      limit: 1,
      manager: "m/K/n/o",
    });
    expect(await pages("admin.listOverrides", { namespace: "email", search: "premium" })).toHaveLength(1);
  });

  test("admin limit explanation predicts the result of the next ratelimit.limit call", async () => {
    const { data } = await aWorkspace();
    await data("ratelimit.createNamespace", { name: "email" });
    const limits = { "*": 1, "premium_*": 100, "*_eu": 50, premium_7_eu: 7, "other*": 9 };
    for (const [identifier, limit] of Object.entries(limits)) {
      await data("ratelimit.setOverride", { namespace: "email", identifier, limit, duration: HOUR_MS });
    }
    for (const [identifier, matching] of Object.entries({
      premium_7_eu: ["premium_7_eu", "premium_*", "*_eu", "*"],
      premium_8_eu: ["premium_*", "*_eu", "*"],
      free_eu: ["*_eu", "*"],
      free: ["*"],
    })) {
      const explained = await data("admin.explainOverride", { namespace: "email", identifier });
      expect(explained.matches.map((one) => one.identifier)).toEqual(matching);
      expect(explained.matches.map((one) => one.overriddenBy === undefined)).toEqual(matching.map((_, i) => i === 0));
      const [{ limit = 0, overrideId = "" } = {}] = explained.matches;
      expect(explained.count).toMatchObject({ used: 0, remaining: limit });
      const applied = await data("ratelimit.limit", { namespace: "email", identifier, limit: 5, duration: HOUR_MS });
      expect(applied).toMatchObject({ limit, overrideId });
      const after = await data("admin.explainOverride", { namespace: "email", identifier });
      expect(after.count).toMatchObject({ used: 1, remaining: limit - 1 });
    }
  });

  test("admin limit explanation without an override uses the requested limit", async () => {
    const { data } = await aWorkspace();
    await data("ratelimit.createNamespace", { name: "email" });
    const asked = { limit: 5, duration: HOUR_MS };
    await data("ratelimit.limit", { namespace: "email", identifier: "free", ...asked, cost: 2 });
    const about = { namespace: "email", identifier: "free" };
    expect(await data("admin.explainOverride", about)).toMatchObject({ matches: [], matchCount: 0 });
    expect((await data("admin.explainOverride", about)).count).toBeUndefined();
    expect((await data("admin.explainOverride", { ...about, ...asked })).count).toMatchObject({
      used: 2,
      remaining: 3,
    });
  });

  test("admin limit explanation shows the closest 50 patterns and the number of all matching patterns", async () => {
    const { data } = await aWorkspace();
    await data("ratelimit.createNamespace", { name: "email" });
    for (let i = 1; i <= 60; i += 1) {
      const body = { namespace: "email", identifier: `${"a".repeat(i)}*`, limit: i, duration: HOUR_MS };
      await data("ratelimit.setOverride", body);
    }
    const explained = await data("admin.explainOverride", { namespace: "email", identifier: "a".repeat(80) });
    expect(explained).toMatchObject({ matchCount: 60, matches: { length: 50, 0: { limit: 60 }, 49: { limit: 11 } } });
  });
});
