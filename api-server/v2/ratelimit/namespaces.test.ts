import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

const auditOf = async (id: string) => (await api.audit()).filter(({ targets }) => targets.some((one) => one.id === id));

describe("namespaces", () => {
  test("rate limit namespaces can be created, read, listed, searched and deleted with their overrides", async () => {
    const { namespaceId } = await api.data("ratelimit.createNamespace", { name: "Life_100%" });
    const expected = { id: namespaceId, name: "Life_100%", createdAt: expect.any(Number) };
    expect(await api.data("ratelimit.getNamespace", { namespace: namespaceId })).toEqual(expected);
    expect(await api.data("ratelimit.getNamespace", { namespace: "Life_100%" })).toEqual(expected);
    for (const search of ["  LIFE_100% ", "fe_1", namespaceId]) {
      expect(await api.data("ratelimit.listNamespaces", { search })).toEqual([expected]);
    }
    // Neither is a wildcard.
    expect(await api.data("ratelimit.listNamespaces", { search: "Life%" })).toEqual([]);
    expect(await api.data("ratelimit.listNamespaces", { search: "LifeX100" })).toEqual([]);
    await api.data("ratelimit.setOverride", { namespace: namespaceId, identifier: "user_1", limit: 5, duration: 1000 });
    expect(await api.data("ratelimit.deleteNamespace", { namespace: "Life_100%" })).toEqual({});
    for (const path of ["ratelimit.getNamespace", "ratelimit.listOverrides", "ratelimit.deleteNamespace"]) {
      expect((await api.call(path, { namespace: namespaceId })).status).toBe(404);
    }
    const successor = await api.data("ratelimit.createNamespace", { name: "Life_100%" });
    expect(successor.namespaceId).not.toBe(namespaceId);
    expect(await api.data("ratelimit.listOverrides", { namespace: "Life_100%" })).toEqual([]);
    expect((await auditOf(namespaceId)).map(({ event }) => event).sort()).toEqual([
      "ratelimit.set_override",
      "ratelimitNamespace.create",
      "ratelimitNamespace.delete",
    ]);
  });

  test("createNamespace requires a unique name, even for 100 concurrent calls", async () => {
    const replies = await Promise.all(
      Array.from({ length: 100 }, () => api.call("ratelimit.createNamespace", { name: "unique" })),
    );
    const made = replies.filter(({ status }) => status === 200);
    expect(made).toHaveLength(1);
    const refused = replies.find(({ status }) => status === 409);
    expect(refused?.body.error).toMatchObject({
      title: "Conflicting Resource",
      type: "https://docs.test/errors/ratelimit_namespace_already_exists",
    });
    expect(replies.filter(({ status }) => status === 409)).toHaveLength(99);
  });

  test("listNamespaces returns pages of 100", async () => {
    const other = await api.makeWorkspace();
    for (let i = 0; i < 101; i++) {
      await api.data("ratelimit.createNamespace", { name: `n${i}` }, { rootKey: other.rootKey });
    }
    const first = await api.call("ratelimit.listNamespaces", {}, { rootKey: other.rootKey });
    expect(first.body.data).toHaveLength(100);
    const { cursor } = first.body.pagination;
    const last = await api.call("ratelimit.listNamespaces", { cursor }, { rootKey: other.rootKey });
    expect(last.body.data).toMatchObject([{ id: cursor }]);
  });

  test.each([
    { path: "ratelimit.createNamespace", body: { name: "" } },
    { path: "ratelimit.createNamespace", body: { name: "n".repeat(513) } },
    { path: "ratelimit.getNamespace", body: { namespace: "" } },
    { path: "ratelimit.listNamespaces", body: { limit: 101 } },
    { path: "ratelimit.listNamespaces", body: { limit: 0 } },
    { path: "ratelimit.listNamespaces", body: { search: "s".repeat(257) } },
  ])("$path rejects out-of-range values", async ({ path, body }) => {
    expect((await api.call(path, body)).status).toBe(400);
  });
});
