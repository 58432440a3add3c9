import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type CallOptions, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: true };
const create = async (externalId: string, options: CallOptions, more: object = {}): Promise<string> =>
  (await t.data("identities.createIdentity", { externalId, ...more }, options)).identityId;
const externalIdsOf = async (body: object, options: CallOptions): Promise<string[]> =>
  (await t.data("identities.listIdentities", body, options))
    .map(({ externalId }: { externalId: string }) => externalId)
    .sort();

describe("pages", () => {
  test("listIdentities pages return every live identity of the workspace exactly once, ordered by id", async () => {
    const options = await t.makeWorkspace();
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) ids.push(await create(`user_${i}`, options));
    await t.data("identities.deleteIdentity", { identity: "user_3" }, options);
    ids.splice(3, 1);
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < 3; page++) {
      const { body } = await t.call("identities.listIdentities", { limit: 2, cursor }, options);
      expect(body.data).toHaveLength(2);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      expect(body.pagination).toEqual(
        page === 2 ? { hasMore: false } : { hasMore: true, cursor: expect.stringMatching(/^id_/) },
      );
      cursor = body.pagination.cursor;
    }
    const { rows } = await t.deps.db.query("select id from unnest($1::text[]) as made (id) order by id", [ids]);
    expect(seen).toEqual(rows.map(({ id }) => id));
  });

  test("listIdentities pages have no duplicates or gaps even during concurrent changes", async () => {
    const options = await t.makeWorkspace();
    for (let i = 0; i < 6; i++) await create(`user_${i}`, options);
    const first = await t.call("identities.listIdentities", { limit: 3 }, options);
    const [gone] = first.body.data;
    await t.data("identities.deleteIdentity", { identity: gone.id }, options);
    const { cursor } = first.body.pagination;
    const rest = await t.data("identities.listIdentities", { cursor }, options);
    expect(rest).toHaveLength(3);
    expect(rest[0].id).toBe(cursor);
  });

  test("listIdentities treats an unknown cursor as a lower bound", async () => {
    const options = await t.makeWorkspace();
    await create("only", options);
    for (const cursor of ["", "id_", "!"]) expect(await externalIdsOf({ cursor }, options)).toEqual(["only"]);
    const { body } = await t.call("identities.listIdentities", { cursor: "zzz" }, options);
    expect(body).toMatchObject({ data: [], pagination: { hasMore: false } });
  });

  test("listIdentities returns meta and limits as getIdentity does", async () => {
    const options = await t.makeWorkspace();
    await create("full", options, { meta: { plan: "pro" }, ratelimits: [limit, { ...limit, name: "another" }] });
    await create("other", options, { ratelimits: [limit] });
    await create("bare", options);
    const list = await t.data("identities.listIdentities", {}, options);
    expect(list).toHaveLength(3);
    for (const one of list) {
      expect(one).toEqual(await t.data("identities.getIdentity", { identity: one.id }, options));
    }
  });

  test.each([
    { body: { limit: 1 }, status: 200 },
    { body: { limit: 100 }, status: 200 },
    { body: { limit: 0 }, status: 400 },
    { body: { limit: 101 }, status: 400 },
    { body: { search: "s".repeat(256) }, status: 200 },
    { body: { search: "s".repeat(257) }, status: 400 },
    { body: { search: null }, status: 400 },
    { body: { nope: 1 }, status: 400 },
  ])("listIdentities with $body returns $status", async ({ body, status }) => {
    expect((await t.call("identities.listIdentities", body)).status).toBe(status);
  });
});

describe("search", () => {
  test("listIdentities searches id and externalId case-insensitively without wildcards", async () => {
    const options = await t.makeWorkspace();
    const id = await create("Mixed.Case", options);
    for (const name of ["under_score", "underXscore", "a.b", "other-one"]) await create(name, options);
    for (const [search, found] of Object.entries({
      "mixed.c": ["Mixed.Case"],
      "  CASE ": ["Mixed.Case"],
      r_s: ["under_score"],
      "under%score": [],
      "%": [],
      "\\": [],
      [id.slice(2, 12).toUpperCase()]: ["Mixed.Case"],
      "no such text": [],
      "   ": ["Mixed.Case", "a.b", "other-one", "underXscore", "under_score"],
    })) {
      expect([search, await externalIdsOf({ search }, options)]).toEqual([search, found]);
    }
  });

  test("listIdentities combines search and paging within one workspace", async () => {
    const options = await t.makeWorkspace();
    const others = await t.makeWorkspace();
    for (let i = 0; i < 5; i++) {
      await create(`wanted.${i}`, options);
      await create(`unwanted-${i}`.replace("un", "not"), options);
      await create(`wanted.x${i}`, others);
    }
    const first = await t.call("identities.listIdentities", { search: "ED.", limit: 3 }, options);
    const { cursor } = first.body.pagination;
    const rest = await t.call("identities.listIdentities", { search: "ED.", limit: 3, cursor }, options);
    const found = [...first.body.data, ...rest.body.data].map(({ externalId }) => externalId);
    expect(found.sort()).toEqual([0, 1, 2, 3, 4].map((i) => `wanted.${i}`));
    expect(rest.body.pagination).toEqual({ hasMore: false });
  });

  test("listIdentities search that takes too long is aborted with an error", async () => {
    const options = await t.makeWorkspace();
    await create("slow", options);
    const holder = await t.deps.db.connect();
    try {
      await holder.query("begin; lock table identities in access exclusive mode");
      const reply = await t.call("identities.listIdentities", { search: "slow" }, options);
      expect(reply.status).toBe(408);
      expect(reply.body.error.type).toBe("https://docs.test/errors/request_timeout");
    } finally {
      await holder.query("rollback");
      holder.release();
    }
    // The limit was of that one search, not of the connection.
    const { rows } = await t.deps.db.query("show statement_timeout");
    expect(rows[0].statement_timeout).toBe("1min");
    expect(await externalIdsOf({ search: "slow" }, options)).toEqual(["slow"]);
  });
});

describe("permission", () => {
  test("listIdentities requires permission only for the identities of the returned page", async () => {
    const { id: workspaceId, rootKey } = await t.makeWorkspace();
    for (const name of ["a", "b", "c"]) await create(name, { rootKey });
    const [first, second, third] = await t.data("identities.listIdentities", {}, { rootKey });
    const tuples = [first, second].map(({ id }) => `identity.${id}.read_identity`);
    const some = { rootKey: await t.rootKey(tuples, { workspaceId }) };
    expect((await t.call("identities.listIdentities", { limit: 2 }, some)).body.data).toEqual([first, second]);
    const refused = await t.call("identities.listIdentities", {}, some);
    expect(refused.status).toBe(403);
    expect(refused.body.error.detail).toContain(`identity.${third.id}.read_identity`);
  });

  test("listIdentities requires at least one read permission even for an empty page", async () => {
    const { id: workspaceId } = await t.makeWorkspace();
    const statusWith = async (permissions: string[]): Promise<number> =>
      (await t.call("identities.listIdentities", {}, { rootKey: await t.rootKey(permissions, { workspaceId }) }))
        .status;
    expect(await statusWith(["identity.*.read_identity"])).toBe(200);
    expect(await statusWith(["identity.id_1.read_identity"])).toBe(200);
    expect(await statusWith(["identity.*.create_identity"])).toBe(403);
  });

  test("listIdentities without permission is rejected without naming identities", async () => {
    const { id: workspaceId, rootKey } = await t.makeWorkspace();
    const id = await create("hidden", { rootKey });
    const stranger = { rootKey: await t.rootKey(["identity.*.create_identity"], { workspaceId }) };
    for (const body of [{}, { search: "hidden" }]) {
      const { error } = (await t.call("identities.listIdentities", body, stranger)).body;
      expect(error.status).toBe(403);
      expect(error.detail).toContain("identity.*.read_identity or identity.<id>.read_identity");
      expect(error.detail).not.toContain(id);
    }
  });
});
