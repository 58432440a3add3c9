import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

const HOUR_MS = 3_600_000;

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
  await api.data("ratelimit.createNamespace", { name: "ns" });
});
afterAll(() => api.close());

const anOverride = { namespace: "ns", identifier: "user_1", limit: 5, duration: HOUR_MS };
const kindOf = (reply: { body: { error: { type: string } } }) => reply.body.error.type.split("/").at(-1);
const auditOf = async (id: string) => (await api.audit()).filter(({ targets }) => targets.some((one) => one.id === id));
const namespaceIdOf = async (namespace: string): Promise<string> =>
  (await api.data("ratelimit.getNamespace", { namespace })).id;

describe("setOverride", () => {
  test.each([
    { name: "limit 0", body: { limit: 0 } },
    { name: "a duration of 1000 ms", body: { duration: 1000 } },
    { name: "a duration beyond thirty days", body: { duration: 31_536_000_000 } },
    { name: "an identifier of 512", body: { identifier: "i".repeat(512) } },
    { name: "an identifier of 512 characters of four bytes", body: { identifier: "😀".repeat(512) } },
    { name: "async", body: { identifier: "a", async: true } },
  ])("setOverride accepts $name", async ({ body }) => {
    expect((await api.call("ratelimit.setOverride", { ...anOverride, ...body })).status).toBe(200);
  });

  test.each([
    { field: "namespace", value: "" },
    { field: "namespace", value: "n".repeat(513) },
    { field: "identifier", value: "" },
    { field: "identifier", value: "n".repeat(513) },
    { field: "limit", value: -1 },
    { field: "duration", value: 999 },
    { field: "async", value: "true" },
    { field: "async", value: null },
    { field: "cost", value: 1 },
  ])("setOverride rejects the value $value of $field", async ({ field, value }) => {
    const reply = await api.call("ratelimit.setOverride", { ...anOverride, [field]: value });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
  });

  test("setOverride updates an override in place, and writes nothing if the values are equal", async () => {
    const identifier = "again";
    const { overrideId } = await api.data("ratelimit.setOverride", { ...anOverride, identifier });
    const changed = { ...anOverride, identifier, limit: 6, duration: 2000 };
    expect(await api.data("ratelimit.setOverride", changed)).toEqual({ overrideId });
    expect(await api.data("ratelimit.setOverride", changed)).toEqual({ overrideId });
    expect(await api.data("ratelimit.getOverride", { namespace: "ns", identifier })).toEqual({
      overrideId,
      identifier,
      limit: 6,
      duration: 2000,
    });
    const rows = await auditOf(overrideId);
    expect(rows.map(({ event }) => event)).toEqual(["ratelimit.set_override", "ratelimit.set_override"]);
    expect(rows[0]?.targets).toEqual([
      { type: "ratelimitOverride", id: overrideId, name: identifier },
      { type: "ratelimitNamespace", id: await namespaceIdOf("ns"), name: "ns" },
    ]);
    expect(rows[0]).toMatchObject({ correlation_id: null, actor: { type: "rootkey", name: "root key" } });
  });

  test("100 concurrent equal setOverride calls create one override", async () => {
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        api.data("ratelimit.setOverride", { ...anOverride, identifier: "crowd", limit: i }),
      ),
    );
    expect(new Set(replies.map(({ overrideId }) => overrideId)).size).toBe(1);
  });

  test("only managed.getObject returns the `async` setting of an override", async () => {
    const { overrideId } = await api.data("ratelimit.setOverride", { ...anOverride, identifier: "seen", async: true });
    expect(await api.data("managed.getObject", { kind: "override", id: overrideId })).toEqual({
      kind: "override",
      id: overrideId,
      async: true,
    });
    const shown = await api.data("ratelimit.getOverride", { namespace: "ns", identifier: "seen" });
    expect(Object.keys(shown).sort()).toEqual(["duration", "identifier", "limit", "overrideId"]);
  });
});

describe("getOverride", () => {
  test("getOverride returns the override for exactly this identifier, otherwise one with a matching pattern, otherwise 404", async () => {
    await api.data("ratelimit.createNamespace", { name: "read" });
    const { overrideId } = await api.data("ratelimit.setOverride", {
      ...anOverride,
      namespace: "read",
      identifier: "p_*",
    });
    const found = await api.data("ratelimit.getOverride", { namespace: "read", identifier: "p_9" });
    expect(found).toMatchObject({ overrideId, identifier: "p_*" });
    const reply = await api.call("ratelimit.getOverride", { namespace: "read", identifier: "q_9" });
    expect(reply.status).toBe(404);
    expect(kindOf(reply)).toBe("ratelimit_override_not_found");
  });
});

describe("deleteOverride", () => {
  test("deleteOverride deletes an override once, then returns 404, and the override can be set again", async () => {
    const ref = { namespace: "ns", identifier: "d_*" };
    const { overrideId } = await api.data("ratelimit.setOverride", { ...anOverride, ...ref });
    const near = await api.call("ratelimit.deleteOverride", { namespace: "ns", identifier: "d_1" });
    expect(kindOf(near)).toBe("ratelimit_override_not_found");
    expect(await api.data("ratelimit.deleteOverride", ref)).toEqual({});
    expect((await api.call("ratelimit.deleteOverride", ref)).status).toBe(404);
    expect((await api.call("ratelimit.getOverride", ref)).status).toBe(404);
    expect((await auditOf(overrideId)).map(({ event }) => event)).toEqual([
      "ratelimit.set_override",
      "ratelimit.delete_override",
    ]);
    expect((await api.call("ratelimit.setOverride", { ...anOverride, ...ref })).status).toBe(200);
    expect(await api.data("ratelimit.getOverride", ref)).toMatchObject({ identifier: "d_*" });
  });
});

describe("listOverrides", () => {
  test("listOverrides pages are ordered by id, have ten overrides by default, and have no duplicates or gaps", async () => {
    await api.data("ratelimit.createNamespace", { name: "pages" });
    const ids: string[] = [];
    for (let i = 0; i < 25; i++) {
      const body = { ...anOverride, namespace: "pages", identifier: `u${i}` };
      ids.push((await api.data("ratelimit.setOverride", body)).overrideId);
    }
    const seen: string[] = [];
    const sizes: number[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await api.call("ratelimit.listOverrides", { namespace: "pages", ...(cursor && { cursor }) });
      sizes.push(body.data.length);
      seen.push(...body.data.map((one: { overrideId: string }) => one.overrideId));
      expect(body.pagination.hasMore).toBe(body.pagination.cursor !== undefined);
      cursor = body.pagination.cursor;
    } while (cursor !== undefined);
    expect(sizes).toEqual([10, 10, 5]);
    expect(new Set(seen)).toEqual(new Set(ids));
    expect(seen).toHaveLength(25);
  });

  test("listOverrides treats any cursor as a lower bound", async () => {
    const beyond = await api.call("ratelimit.listOverrides", { namespace: "pages", cursor: "zzzz" });
    expect(beyond.body).toMatchObject({ data: [], pagination: { hasMore: false } });
    const all = await api.call("ratelimit.listOverrides", { namespace: "pages", cursor: "", limit: 100 });
    expect(all.body.data).toHaveLength(25);
    expect(all.body.pagination).toEqual({ hasMore: false });
  });

  test.each([0, 101, "5", null])("listOverrides rejects the limit %s", async (limit) => {
    expect((await api.call("ratelimit.listOverrides", { namespace: "pages", limit })).status).toBe(400);
  });

  test("listOverrides excludes deleted overrides", async () => {
    await api.data("ratelimit.createNamespace", { name: "left-out" });
    const body = { ...anOverride, namespace: "left-out" };
    await api.data("ratelimit.setOverride", body);
    await api.data("ratelimit.deleteOverride", { namespace: "left-out", identifier: body.identifier });
    expect(await api.data("ratelimit.listOverrides", { namespace: "left-out" })).toEqual([]);
  });
});

describe("permissions", () => {
  const cases = [
    { path: "ratelimit.setOverride", action: "set_override", body: anOverride },
    { path: "ratelimit.getOverride", action: "read_override", body: { namespace: "ns", identifier: "user_1" } },
    { path: "ratelimit.listOverrides", action: "read_override", body: { namespace: "ns" } },
    { path: "ratelimit.deleteOverride", action: "delete_override", body: { namespace: "ns", identifier: "nobody" } },
    { path: "ratelimit.getNamespace", action: "read_namespace", body: { namespace: "ns" } },
    { path: "ratelimit.deleteNamespace", action: "delete_namespace", body: { namespace: "ns" } },
  ];

  test.each(cases)(
    "$path requires $action for all namespaces or for this namespace id",
    async ({ path, action, body }) => {
      const id = await namespaceIdOf("ns");
      const refused = await api.call(path, body, { rootKey: await api.rootKey([`ratelimit.ns.${action}`]) });
      expect(refused.status).toBe(403);
      expect(refused.body.error.detail).toContain(`ratelimit.*.${action} or ratelimit.${id}.${action}`);
      if (path === "ratelimit.deleteNamespace") return;
      const allowed = await api.call(path, body, { rootKey: await api.rootKey([`ratelimit.${id}.${action}`]) });
      expect(allowed.status).not.toBe(403);
    },
  );

  test.each(cases)(
    "$path checks for 404 before 403, and responds alike for missing and foreign namespaces",
    async ({ path, body }) => {
      const rootKey = await api.rootKey(["identity.*.read_identity"]);
      const other = await api.makeWorkspace();
      const bodies: string[] = [];
      const name = `same-${path}`;
      const ask = async (): Promise<string> => {
        const reply = await api.call(path, { ...body, namespace: name }, { rootKey });
        expect(reply.status).toBe(404);
        expect(kindOf(reply)).toBe("ratelimit_namespace_not_found");
        return JSON.stringify(reply.body.error);
      };
      bodies.push(await ask());
      await api.data("ratelimit.createNamespace", { name }, { rootKey: other.rootKey });
      bodies.push(await ask());
      await api.data("ratelimit.createNamespace", { name });
      await api.data("ratelimit.deleteNamespace", { namespace: name });
      bodies.push(await ask());
      expect(new Set(bodies).size).toBe(1);
    },
  );

  test("override is unreachable through another workspace's namespace id", async () => {
    const other = await api.makeWorkspace();
    const id = await namespaceIdOf("ns");
    const reply = await api.call("ratelimit.setOverride", { ...anOverride, namespace: id }, { rootKey: other.rootKey });
    expect(reply.status).toBe(404);
  });
});
