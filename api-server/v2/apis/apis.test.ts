import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const MANAGER = { "Postern-Manager": "prod/ApiKeyPolicy/shop/orders" };
const OTHER_MANAGER = { "Postern-Manager": "prod/ApiKeyPolicy/shop/invoices" };
const createApi = async (name = "payments"): Promise<string> => (await t.data("apis.createApi", { name })).apiId;
const statusOf = async (...args: Parameters<TestApp["call"]>) => (await t.call(...args)).status;

describe("apis.createApi", () => {
  test("apis.createApi returns an id that apis.getApi accepts", async () => {
    const apiId = await createApi("payments");
    expect(apiId).toMatch(/^api_[a-zA-Z0-9]{16}$/);
    expect(await t.data("apis.getApi", { apiId })).toEqual({ id: apiId, name: "payments" });
  });

  test.each([
    { length: 2, status: 400 },
    { length: 3, status: 200 },
    { length: 256, status: 200 },
    { length: 257, status: 400 },
  ])("apis.createApi with a name of $length characters returns $status", async ({ length, status }) => {
    expect(await statusOf("apis.createApi", { name: "ü".repeat(length) })).toBe(status);
  });

  test("apis.createApi accepts duplicate names", async () => {
    expect(await createApi("twin")).not.toBe(await createApi("twin"));
  });

  test("apis.createApi requires api.*.create_api, and the error names this permission", async () => {
    const rootKey = await t.rootKey(["api.*.read_api"]);
    const reply = await t.call("apis.createApi", { name: "abc" }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toBe("The root key lacks the permission api.*.create_api.");
  });

  test("apis.createApi writes the actor to the audit log", async () => {
    const workspace = await t.makeWorkspace();
    const rootKey = await t.rootKey(["api.*.create_api"], { workspaceId: workspace.id, name: "deployer" });
    const { body } = await t.call(
      "apis.createApi",
      { name: "abc" },
      { rootKey, headers: { "user-agent": "tester/1" } },
    );
    expect(await t.audit(workspace.id)).toMatchObject([
      {
        event: "api.create",
        actor: { type: "rootkey", name: "deployer" },
        targets: [{ type: "api", id: body.data.apiId, name: "abc" }],
        correlation_id: null,
        request_id: body.meta.requestId,
        remote_ip: "127.0.0.1",
        user_agent: "tester/1",
      },
    ]);
  });

  test("apis.createApi is idempotent for a manager, even concurrently", async () => {
    const workspace = await t.makeWorkspace();
    const create = () => t.data("apis.createApi", { name: "abc" }, { rootKey: workspace.rootKey, headers: MANAGER });
    const made = await Promise.all([create(), create(), create(), create()]);
    expect(new Set(made.map(({ apiId }) => apiId)).size).toBe(1);
    expect(await create()).toEqual(made[0]);
    const audit = await t.audit(workspace.id);
    expect(audit).toHaveLength(1);
    expect(audit[0]?.actor.meta).toEqual({ manager: MANAGER["Postern-Manager"] });
  });
});

describe("apis.getApi", () => {
  test.each([
    { apiId: "api_123", status: 400 },
    { apiId: "api_1234", status: 404 },
    { apiId: "a".repeat(255), status: 404 },
    { apiId: "a".repeat(256), status: 400 },
    { apiId: "api-12345", status: 400 },
  ])("apis.getApi accepts only ids of 8 to 255 characters: $apiId", async ({ apiId, status }) => {
    expect(await statusOf("apis.getApi", { apiId })).toBe(status);
  });
});

describe("apis.updateApi", () => {
  test("apis.updateApi renames the API, and changes nothing if the call has no name", async () => {
    const apiId = await createApi("before");
    expect(await t.data("apis.updateApi", { apiId, name: "after" })).toEqual({});
    await t.data("apis.updateApi", { apiId });
    expect(await t.data("apis.getApi", { apiId })).toEqual({ id: apiId, name: "after" });
  });

  test("apis.updateApi without changes writes no audit entry", async () => {
    const apiId = await createApi();
    const { name } = await t.data("apis.getApi", { apiId });
    const rows = (await t.audit()).length;
    expect(await t.data("apis.updateApi", { apiId })).toEqual({});
    expect(await t.data("apis.updateApi", { apiId, name })).toEqual({});
    expect(await t.audit()).toHaveLength(rows);
  });

  const settingsOf = async (apiId: string) => (await t.data("admin.listApis", { search: apiId }))[0];

  test("apis.updateApi changes only the given settings, and null removes a default", async () => {
    const apiId = await createApi("with settings");
    const settings = {
      defaultPrefix: "prod",
      defaultByteLength: 24,
      ipAllowList: ["10.0.0.0/8", "::1"],
      deleteProtection: true,
      keyEncryption: true,
    };
    await t.data("apis.updateApi", { apiId, ...settings, ipAllowList: [...settings.ipAllowList, "::1"] });
    expect(await settingsOf(apiId)).toMatchObject({ name: "with settings", ...settings });
    const rows = (await t.audit()).length;
    await t.data("apis.updateApi", { apiId, ...settings });
    expect(await t.audit()).toHaveLength(rows);
    const { key } = await t.data("keys.createKey", { apiId });
    expect(key).toMatch(/^prod_\w{30,}$/);
    expect(await statusOf("apis.deleteApi", { apiId })).toBe(412);
    await t.data("apis.updateApi", { apiId, deleteProtection: false, defaultPrefix: null });
    const { defaultPrefix: _, ...kept } = settings;
    expect(await settingsOf(apiId)).toMatchObject({ ...kept, deleteProtection: false });
    expect(await settingsOf(apiId)).not.toHaveProperty("defaultPrefix");
    await t.data("apis.updateApi", { apiId, defaultByteLength: null, ipAllowList: [], keyEncryption: false });
    const plain = await settingsOf(apiId);
    expect([plain.defaultByteLength, plain.ipAllowList, plain.keyEncryption]).toEqual([undefined, undefined, false]);
    expect(await statusOf("apis.deleteApi", { apiId })).toBe(200);
  });

  test.each([
    { field: "defaultPrefix", value: "" },
    { field: "defaultPrefix", value: "nine_char" },
    { field: "defaultPrefix", value: "a-b" },
    { field: "defaultByteLength", value: 15 },
    { field: "defaultByteLength", value: 256 },
    { field: "ipAllowList", value: ["10.0.0.1", "10.0.0.0/33"] },
    { field: "ipAllowList", value: ["example.com"] },
    { field: "ipAllowList", value: Array.from({ length: 101 }, (_, at) => `10.0.0.${at}`) },
    { field: "ipAllowList", value: null },
    { field: "deleteProtection", value: "on" },
  ])("apis.updateApi rejects $field $value, and changes nothing", async ({ field, value }) => {
    const apiId = await createApi();
    const { status, body } = await t.call("apis.updateApi", { apiId, name: "renamed", [field]: value });
    expect(status).toBe(400);
    expect(body.error.errors[0].location).toMatch(new RegExp(`^body\\.${field}`));
    expect((await settingsOf(apiId)).name).toBe("payments");
  });

  test("apis.updateApi keeps the settings of a managed API, and those of any API if the root key lacks the permission", async () => {
    const { apiId } = await t.data("apis.createApi", { name: "held" }, { headers: MANAGER });
    const change = { apiId, deleteProtection: true };
    const poor = { rootKey: await t.rootKey(["api.api_other123.update_api", "api.*.read_api"]) };
    expect([await statusOf("apis.updateApi", change), await statusOf("apis.updateApi", change, poor)]).toEqual([
      409, 403,
    ]);
    expect(await settingsOf(apiId)).toMatchObject({ deleteProtection: false });
  });
});

describe("a managed API", () => {
  test("managed API can be changed only by its manager, and can be released and adopted", async () => {
    const workspace = await t.makeWorkspace();
    const as = (headers: Record<string, string> = {}) => ({ rootKey: workspace.rootKey, headers });
    const { apiId } = await t.data("apis.createApi", { name: "orders" }, as(MANAGER));
    const update = { apiId, name: "renamed" };
    for (const headers of [{}, OTHER_MANAGER, { ...OTHER_MANAGER, "Postern-Adopt": "true" }]) {
      const refused = await t.call("apis.updateApi", update, as(headers));
      expect(refused.body.error).toMatchObject({
        status: 409,
        title: "Conflicting Resource",
        type: "https://docs.test/errors/managed_by_manifest",
      });
      expect(refused.body.error.detail).toContain(MANAGER["Postern-Manager"]);
      expect(await statusOf("apis.deleteApi", { apiId }, as(headers))).toBe(409);
    }
    expect(await statusOf("apis.updateApi", update, as(MANAGER))).toBe(200);
    expect(await statusOf("apis.deleteApi", { apiId }, as({ ...MANAGER, "Postern-Release": "true" }))).toBe(200);
    expect(await statusOf("apis.updateApi", update, as())).toBe(200);
    expect(await statusOf("apis.updateApi", update, as({ ...OTHER_MANAGER, "Postern-Adopt": "true" }))).toBe(200);
    expect(await statusOf("apis.updateApi", update, as(MANAGER))).toBe(409);
    expect(await statusOf("apis.deleteApi", { apiId }, as(OTHER_MANAGER))).toBe(200);
    expect(await statusOf("apis.getApi", { apiId }, as())).toBe(404);
  });
});

describe("apis.deleteApi", () => {
  test("apis.deleteApi invalidates its keys for the next verification", async () => {
    const apiId = await createApi();
    const { keyId, key } = await t.data("keys.createKey", { apiId });
    expect((await t.data("keys.verifyKey", { key })).code).toBe("VALID");
    expect(await t.data("apis.deleteApi", { apiId })).toEqual({});
    expect(await t.data("keys.verifyKey", { key })).toEqual({ valid: false, code: "NOT_FOUND" });
    for (const path of ["keys.getKey", "keys.updateKey", "keys.deleteKey"])
      expect(await statusOf(path, { keyId })).toBe(404);
    for (const path of ["apis.getApi", "apis.deleteApi", "apis.listKeys", "apis.updateApi"]) {
      expect(await statusOf(path, { apiId })).toBe(404);
    }
    expect(await statusOf("keys.createKey", { apiId })).toBe(404);
  });

  test("apis.deleteApi checks for 403, then 404, then 412 (protected)", async () => {
    const apiId = await createApi();
    const rootKey = await t.rootKey(["api.*.read_api"]);
    expect(await statusOf("apis.deleteApi", { apiId: "api_missing0" }, { rootKey })).toBe(403);
    expect(await statusOf("apis.deleteApi", { apiId: "api_missing0" })).toBe(404);
    await t.deps.db.query("update apis set delete_protection = true where id = $1", [apiId]);
    const reply = await t.call("apis.deleteApi", { apiId });
    expect(reply.body.error).toMatchObject({
      status: 412,
      title: "Resource is protected",
      type: "https://docs.test/errors/protected_resource",
    });
    expect(await statusOf("apis.getApi", { apiId })).toBe(200);
  });

  test("apis.deleteApi writes an api.delete audit entry", async () => {
    const apiId = await createApi();
    await t.data("apis.deleteApi", { apiId });
    const events = (await t.audit()).filter(({ targets }) => targets[0]?.id === apiId).map(({ event }) => event);
    expect(events).toEqual(["api.create", "api.delete"]);
  });
});

describe("apis.listKeys", () => {
  test("apis.listKeys pages are ordered by id, without duplicates or gaps even during concurrent changes", async () => {
    const apiId = await createApi();
    const made: string[] = [];
    for (let i = 0; i < 7; i++) made.push((await t.data("keys.createKey", { apiId })).keyId);
    const seen: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const { body } = await t.call("apis.listKeys", { apiId, limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...body.data.map(({ keyId }: { keyId: string }) => keyId));
      expect(body.pagination.hasMore).toBe(body.pagination.cursor !== undefined);
      cursor = body.pagination.cursor;
      const [first = ""] = seen;
      if (pages === 0) await t.data("keys.deleteKey", { keyId: first, permanent: true });
      pages += 1;
    } while (cursor !== undefined);
    expect(pages).toBe(3);
    expect(seen.toSorted()).toEqual(made.toSorted());
  });

  test("apis.listKeys returns live keys as keys.getKey does, including disabled and expired ones", async () => {
    const apiId = await createApi();
    const full = {
      apiId,
      name: "n",
      externalId: "user_1",
      meta: { a: [1, { b: null }] },
      permissions: ["b.read", "a.read"],
      credits: { remaining: 3, refill: { interval: "monthly", amount: 2, refillDay: 31 } },
      ratelimits: [{ name: "requests", limit: 5, duration: 1000 }],
    };
    const ids = [
      (await t.data("keys.createKey", full)).keyId,
      (await t.data("keys.createKey", { apiId, enabled: false })).keyId,
      (await t.data("keys.createKey", { apiId, expires: 0 })).keyId,
    ];
    const gone = (await t.data("keys.createKey", { apiId })).keyId;
    await t.data("keys.deleteKey", { keyId: gone });
    const listed = await t.data("apis.listKeys", { apiId });
    const read = await Promise.all(ids.map((keyId) => t.data("keys.getKey", { keyId })));
    expect(listed.map((key: { keyId: string }) => key.keyId)).toEqual(ids.toSorted());
    for (const key of read) expect(listed).toContainEqual(key);
  });

  test("apis.listKeys filters by identity", async () => {
    const apiId = await createApi();
    const { keyId } = await t.data("keys.createKey", { apiId, externalId: "only_me" });
    await t.data("keys.createKey", { apiId });
    const listed = await t.data("apis.listKeys", { apiId, externalId: "only_me" });
    expect(listed.map((key: { keyId: string }) => key.keyId)).toEqual([keyId]);
    const { body } = await t.call("apis.listKeys", { apiId, externalId: "nobody" });
    expect(body).toMatchObject({ data: [], pagination: { hasMore: false } });
  });

  test("apis.listKeys treats any cursor as a lower bound", async () => {
    const apiId = await createApi();
    await t.data("keys.createKey", { apiId });
    expect(await t.data("apis.listKeys", { apiId, cursor: "" })).toHaveLength(1);
    expect(await t.data("apis.listKeys", { apiId, cursor: "zzz garbage %" })).toEqual([]);
  });

  test.each([
    { body: { limit: 0 }, status: 400 },
    { body: { limit: 1 }, status: 200 },
    { body: { limit: 100 }, status: 200 },
    { body: { limit: 101 }, status: 400 },
    { body: { limit: 1.5 }, status: 400 },
    { body: { externalId: "" }, status: 400 },
    { body: { revalidateKeysCache: true }, status: 200 },
    { body: { decrypt: true }, status: 412 },
  ])("apis.listKeys with $body returns $status", async ({ body, status }) => {
    expect(await statusOf("apis.listKeys", { apiId: await createApi(), ...body })).toBe(status);
  });

  test("apis.listKeys checks for 404, then 403, then 412", async () => {
    const apiId = await createApi();
    const keysOnly = await t.rootKey([`api.${apiId}.read_key`]);
    const apisOnly = await t.rootKey(["api.*.read_api"]);
    expect(await statusOf("apis.listKeys", { apiId: "nope" }, { rootKey: keysOnly })).toBe(404);
    const first = await t.call("apis.listKeys", { apiId, decrypt: true }, { rootKey: apisOnly });
    expect([first.status, first.body.error.detail]).toEqual([
      403,
      expect.stringContaining(`api.*.read_key or api.${apiId}.read_key`),
    ]);
    const second = await t.call("apis.listKeys", { apiId }, { rootKey: keysOnly });
    expect([second.status, second.body.error.detail]).toEqual([403, expect.stringContaining("read_api")]);
  });
});
