import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type CallOptions, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

let made = 0;
const unique = (name: string): string => `${name}${++made}`;
const create = async (body: object = {}, options?: CallOptions): Promise<string> =>
  (await t.data("permissions.createPermission", { name: "Some name", slug: unique("slug."), ...body }, options))
    .permissionId;

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

  test("permission and role lists return every entry of the workspace across pages, ordered by id", async () => {
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

  test("search in permission and role lists covers all text fields, ignores case and has no wildcards", async () => {
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
  ])("permission and role lists with $body return $status", async ({ body, status }) => {
    expect((await t.call(path, body)).status).toBe(status);
  });
});

test("listPermissions also searches slugs", async () => {
  const options = await t.makeWorkspace();
  const id = await create({ name: "Name", slug: "documents.Read" }, options);
  const found = await t.data("permissions.listPermissions", { search: "S.READ" }, options);
  expect(found).toEqual([{ id, name: "Name", slug: "documents.Read" }]);
});

test("listRoles returns each role as getRole does", async () => {
  const options = await t.makeWorkspace();
  for (const [name, permissions] of Object.entries({ a: ["z", "y"], b: ["y"], c: [] })) {
    await t.data("permissions.createRole", { name, permissions, description: name === "b" ? "second" : "" }, options);
  }
  const roles = await t.data("permissions.listRoles", {}, options);
  expect(roles).toHaveLength(3);
  for (const role of roles) expect(role).toEqual(await t.data("permissions.getRole", { role: role.id }, options));
});
