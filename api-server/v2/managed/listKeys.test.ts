import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
let apiId: string;
beforeAll(async () => {
  api = await buildTestApp();
  apiId = (await api.data("apis.createApi", { name: "orders" })).apiId;
  await api.data("permissions.createRole", { name: "editor", permissions: ["documents.write"] });
});
afterAll(() => api.close());

const as = (manager: string) => ({ headers: { "Postern-Manager": manager } });
const list = (manager: string, options?: object) => api.call("managed.listKeys", { manager }, options);
const idsOf = (keys: Array<{ keyId: string }>) => keys.map(({ keyId }) => keyId);

describe("listKeys", () => {
  test("managed.listKeys returns live keys of a manager, newest first", async () => {
    const manager = "main/ApiKey/shop/orders";
    const { apiId: otherId } = await api.data("apis.createApi", { name: "bills" });
    const make = (body: object, by = manager): Promise<{ keyId: string; key: string }> =>
      api.data("keys.createKey", { apiId, ...body }, as(by));
    // Of another manager, and of none.
    await make({ name: "b" }, "main/ApiKey/shop/orders-2");
    await api.data("keys.createKey", { apiId, name: "b" });
    const first = await make({
      name: "b",
      roles: ["editor"],
      permissions: ["documents.read"],
      credits: { remaining: 3 },
    });
    const second = await make({ name: "a", apiId: otherId, expires: 4_000_000_000_000, enabled: false });
    const gone = await make({ name: "c" });
    await api.data("keys.deleteKey", { keyId: gone.keyId }, as(manager));

    const reply = await list(manager);
    expect(reply.body.data.keys).toEqual([
      expect.objectContaining({
        keyId: second.keyId,
        apiId: otherId,
        name: "a",
        enabled: false,
        expires: 4_000_000_000_000,
      }),
      expect.objectContaining({ keyId: first.keyId, apiId, name: "b", roles: ["editor"], credits: { remaining: 3 } }),
    ]);
    expect(reply.body.data.keys[1].permissions.sort()).toEqual(["documents.read", "documents.write"]);
    expect(reply.body.data.keys[1].directPermissions).toEqual(["documents.read"]);
    expect(reply.body.data.keys[0]).not.toHaveProperty("directPermissions");
    expect(JSON.stringify(reply.body)).not.toContain(first.key);
    expect(Math.abs(reply.body.data.now - api.deps.nowMs())).toBeLessThan(60_000);
  });

  test("managed.listKeys returns no keys for a manager without keys or of another workspace", async () => {
    const manager = "main/ApiKey/shop/none";
    await api.data("keys.createKey", { apiId, name: "a" }, as(manager));
    const other = await api.makeWorkspace();
    expect((await list(manager, { rootKey: other.rootKey })).body.data.keys).toEqual([]);
    expect((await list("main/ApiKey/shop/unknown")).body.data.keys).toEqual([]);
    expect(idsOf((await list(manager)).body.data.keys)).toHaveLength(1);
  });

  test("managed.listKeys returns the newest 100 keys", async () => {
    const manager = "main/ApiKey/shop/many";
    const made: string[] = [];
    for (let n = 0; n < 101; n++) {
      made.push((await api.data("keys.createKey", { apiId, name: `n${n}` }, as(manager))).keyId);
    }
    const listed = idsOf((await list(manager)).body.data.keys);
    expect(listed).toHaveLength(100);
    const createdAt = await api.deps.db.query<{ id: string; created_at: number }>(
      "select id, created_at from keys where manager = $1 order by created_at desc, id desc",
      [manager],
    );
    expect(listed).toEqual(createdAt.rows.slice(0, 100).map(({ id }) => id));
    expect(new Set(listed).size).toBe(100);
  });
});
