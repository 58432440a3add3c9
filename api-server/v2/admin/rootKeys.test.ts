import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

const DAY_MS = 86_400_000;
const RTL = "‮gnp.exe";
const HOSTILE = `<img src=x onerror=alert(1)> "'&${RTL}`;

const create = (body: object = {}, rootKey?: string) =>
  api.call(
    "admin.createRootKey",
    { name: "a root key", permissions: ["api.*.create_api"], ...body },
    rootKey === undefined ? {} : { rootKey },
  );

describe("createRootKey", () => {
  test("createRootKey returns a working root key and stores only its hash", async () => {
    const expires = Date.now() + 30 * DAY_MS;
    const body = { name: "billing", permissions: ["api.*.create_api"], environment: "production", expires };
    const { status, body: reply } = await create(body);
    expect(status).toBe(200);
    const { rootKeyId, rootKey, start } = reply.data;
    expect(rootKey.startsWith(start)).toBe(true);
    await api.data("apis.createApi", { name: "made with it" }, { rootKey });
    expect((await api.call("admin.listRootKeys", {}, { rootKey })).status).toBe(403);
    const { rows } = await api.deps.db.query("select * from root_keys where id = $1", [rootKeyId]);
    expect(rows[0]).toMatchObject({ hash: hashKey(rootKey), workspace_id: api.workspace.id, expires_at: expires });
    expect(JSON.stringify(rows[0])).not.toContain(rootKey);
    expect(api.logs.join()).not.toContain(rootKey);
    expect((await api.audit()).filter(({ event }) => event === "rootKey.create").at(-1)).toMatchObject({
      actor: { type: "rootkey" },
      targets: [{ type: "rootKey", id: rootKeyId, name: "billing" }],
      request_id: expect.stringMatching(/^req_/),
    });
    const [listed] = await api.data("admin.listRootKeys", { search: rootKeyId });
    expect(listed).toEqual({
      rootKeyId,
      name: "billing",
      start,
      environment: "production",
      permissions: ["api.*.create_api"],
      state: "active",
      enabled: true,
      expires,
      createdAt: expect.any(Number),
      revision: 1,
      findings: [],
    });
  });

  test("createRootKey uses the workspace of the caller", async () => {
    const other = await api.makeWorkspace();
    const { rootKey } = (await create({}, other.rootKey)).body.data;
    expect((await api.data("workspaces.getWorkspace", {}, { rootKey })).id).toBe(other.id);
  });

  test("createRootKey stores each permission only once, and normalizes the type `apis` to `api`", async () => {
    const permissions = ["apis.api_1.read_api", "api.api_1.read_api", "api.*.read_key"];
    const { rootKeyId } = (await create({ permissions })).body.data;
    const [listed] = await api.data("admin.listRootKeys", { search: rootKeyId });
    expect(listed.permissions).toEqual(["api.*.read_key", "api.api_1.read_api"]);
  });

  test("createRootKey rejects permissions that the caller lacks and names each", async () => {
    const less = await api.rootKey(["workspace.*.create_root_key", "api.*.read_key", "api.api_1.read_api"]);
    const permissions = ["api.api_9.read_key", "api.api_1.read_api", "api.*.read_api", "rbac.*.read_role"];
    const refused = await create({ permissions }, less);
    expect(refused.status).toBe(403);
    expect(refused.body.error.detail).toBe(
      "A caller can grant only permissions that it holds; this caller lacks api.*.read_api, rbac.*.read_role.",
    );
    expect((await create({ permissions: permissions.slice(0, 2) }, less)).status).toBe(200);
  });

  test("createRootKey can grant access to other workspaces only if the caller has it", async () => {
    const { rootKey } = await api.makeWorkspace();
    const refused = await create({ permissions: ["installation.*.read_workspace"] }, rootKey);
    expect([refused.status, refused.body.error.detail]).toEqual([
      403,
      expect.stringContaining("installation.*.read_workspace"),
    ]);
  });

  test.each([
    { body: { permissions: [] }, location: "body.permissions" },
    { body: { permissions: ["api.*.read_api", "*"] }, location: "body.permissions[1]" },
    { body: { permissions: ["api.*.fly"] }, location: "body.permissions[0]" },
    { body: { permissions: Array(1001).fill("api.*.read_api") }, location: "body.permissions" },
    { body: { name: "ab" }, location: "body.name" },
    { body: { name: "   " }, location: "body.name" },
    { body: { name: "a\nb" }, location: "body.name" },
    { body: { name: "x".repeat(256) }, location: "body.name" },
    { body: { environment: "" }, location: "body.environment" },
    { body: { environment: "<b>" }, location: "body.environment" },
    { body: { environment: "e".repeat(65) }, location: "body.environment" },
    { body: { expires: -1 }, location: "body.expires" },
    { body: { rootKey: "mine" }, location: "body.rootKey" },
  ])("createRootKey rejects $body", async ({ body, location }) => {
    const { status, body: reply } = await create(body);
    expect([status, reply.error.errors[0]?.location]).toEqual([400, location]);
  });

  test.each([{ name: "abc" }, { name: "😀".repeat(255) }, { name: HOSTILE }])(
    "createRootKey stores the name $name unchanged",
    async ({ name }) => {
      const { rootKeyId } = (await create({ name })).body.data;
      expect((await api.data("admin.listRootKeys", { search: rootKeyId }))[0].name).toBe(name);
    },
  );
});

describe("listRootKeys", () => {
  test("listRootKeys pages return all root keys of the workspace, ordered by id", async () => {
    const { id: workspaceId, rootKey } = await api.makeWorkspace();
    await Promise.all(Array.from({ length: 6 }, () => create({}, rootKey)));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await api.call("admin.listRootKeys", { limit: 3, cursor }, { rootKey });
      seen.push(...body.data.map((one: { rootKeyId: string }) => one.rootKeyId));
      ({ cursor } = body.pagination);
    } while (cursor !== undefined);
    const text = "select r.id from root_keys r where r.workspace_id = $1 order by r.id";
    const { rows } = await api.deps.db.query<{ id: string }>(text, [workspaceId]);
    expect(seen).toEqual(rows.map(({ id }) => id));
    expect(seen).toHaveLength(7);
  });

  test("listRootKeys searches id, name and start case-insensitively and filters by environment and state", async () => {
    const { rootKey, id: workspaceId } = await api.makeWorkspace();
    const nowMs = Date.now();
    const made = {
      one: (await create({ name: "Café 100%", environment: "staging" }, rootKey)).body.data,
      two: (await create({ name: "under_score", expires: nowMs - 1 }, rootKey)).body.data,
      three: (await create({ name: "underXscore", environment: "production" }, rootKey)).body.data,
    };
    const names = async (body: object) =>
      (await api.data("admin.listRootKeys", body, { rootKey })).map((one: { name?: string }) => one.name ?? "-").sort();
    const text = "update root_keys set enabled = false where workspace_id = $1 and id = $2";
    await api.deps.db.query(text, [workspaceId, made.three.rootKeyId]);
    expect(await names({ search: "CAFÉ 100%" })).toEqual(["Café 100%"]);
    expect(await names({ search: "r_s" })).toEqual(["under_score"]);
    expect(await names({ search: made.one.rootKeyId.slice(4).toUpperCase() })).toEqual(["Café 100%"]);
    expect(await names({ search: made.two.start.toUpperCase() })).toEqual(["under_score"]);
    expect(await names({ environment: "staging" })).toEqual(["Café 100%"]);
    expect(await names({ environment: "Staging" })).toEqual([]);
    expect(await names({ state: "expired" })).toEqual(["under_score"]);
    expect(await names({ state: "disabled" })).toEqual(["underXscore"]);
    expect(await names({ state: "active" })).toEqual(["-", "Café 100%"]);
    expect(await names({ search: "under", state: "disabled", environment: "staging" })).toEqual([]);
  });

  test("listRootKeys with v1UsedSince returns only root keys that called v1 since that day", async () => {
    const { rootKey, id } = await api.makeWorkspace();
    const { rootKeyId } = (await create({}, rootKey)).body.data;
    const text =
      "insert into root_key_v1_usage (root_key_id, workspace_id, last_used_on) values ($1, $2, '2026-02-01')";
    await api.deps.db.query(text, [rootKeyId, id]);
    const since = async (v1UsedSince: string) => {
      const rows = await api.data("admin.listRootKeys", { v1UsedSince }, { rootKey });
      return rows.map((one: { rootKeyId: string }) => one.rootKeyId);
    };
    for (const day of ["0000-01-01", "2026-02-01"]) expect(await since(day)).toEqual([rootKeyId]);
    for (const day of ["2026-02-02", "9999-12-31"]) expect(await since(day)).toEqual([]);
    const { status } = await api.call("admin.listRootKeys", { v1UsedSince: "2026-02-30" }, { rootKey });
    expect(status).toBe(400);
  });

  test("listRootKeys excludes secrets, hashes and revoked root keys", async () => {
    const { rootKey } = await api.makeWorkspace();
    const made = (await create({}, rootKey)).body.data;
    const shown = JSON.stringify((await api.call("admin.listRootKeys", {}, { rootKey })).body);
    expect(shown).toContain(made.rootKeyId);
    for (const secret of [made.rootKey, hashKey(made.rootKey), rootKey, hashKey(rootKey)]) {
      expect(shown).not.toContain(secret);
    }
    await api.deps.db.query("update root_keys set deleted_at = 1 where id = $1", [made.rootKeyId]);
    expect(await api.data("admin.listRootKeys", { search: made.rootKeyId }, { rootKey })).toEqual([]);
  });
});

const made = async (body: object = {}, rootKey?: string): Promise<{ rootKeyId: string; rootKey: string }> =>
  (await create(body, rootKey)).body.data;
const works = async (rootKey: string): Promise<number> =>
  (await api.call("workspaces.getWorkspace", {}, { rootKey })).status;
const get = (rootKeyId: string) => api.data("admin.getRootKey", { rootKeyId });
const update = (body: object, rootKey?: string) =>
  api.call("admin.updateRootKey", body, rootKey === undefined ? {} : { rootKey });

/** A caller with these permissions, which knows its own id. */
async function caller(permissions: readonly string[]): Promise<{ rootKeyId: string; rootKey: string }> {
  return made({ permissions });
}

describe("getRootKey", () => {
  test("getRootKey returns the same fields as the list", async () => {
    const { rootKeyId } = await made({ environment: "staging" });
    const [listed] = await api.data("admin.listRootKeys", { search: rootKeyId });
    expect(await get(rootKeyId)).toEqual({ ...listed, uses: [], usesSince: expect.any(Number) });
  });

  test("getRootKey of a revoked or unknown root key gets 404", async () => {
    const { rootKeyId } = await made();
    await api.data("admin.deleteRootKey", { rootKeyId });
    for (const id of [rootKeyId, "rk_unknown"]) {
      expect((await api.call("admin.getRootKey", { rootKeyId: id })).status).toBe(404);
    }
  });
});

describe("updateRootKey", () => {
  test("updateRootKey changes only given fields and audits them", async () => {
    const expires = Date.now() + DAY_MS;
    const { rootKeyId, rootKey } = await made({ name: "before", environment: "staging", expires });
    const { body } = await update({ rootKeyId, name: "after" });
    expect(body.data).toMatchObject({ name: "after", environment: "staging", expires, revision: 2 });
    expect((await update({ rootKeyId, environment: null, expires: null })).body.data).toEqual({
      rootKeyId,
      name: "after",
      start: expect.any(String),
      permissions: ["api.*.create_api"],
      state: "active",
      enabled: true,
      createdAt: expect.any(Number),
      revision: 3,
      findings: [],
      uses: [],
      usesSince: expect.any(Number),
    });
    expect(await works(rootKey)).toBe(200);
    const text = "select description from audit_log where targets @> $1 order by time, id";
    const of = JSON.stringify([{ id: rootKeyId }]);
    const { rows } = await api.deps.db.query<{ description: string }>(text, [of]);
    expect(rows.map(({ description }) => description).sort()).toEqual([
      `Created root key ${rootKeyId}`,
      `Updated root key ${rootKeyId}: environment none, expires never`,
      `Updated root key ${rootKeyId}: name "after"`,
    ]);
  });

  test("updateRootKey takes effect with the next call", async () => {
    const { rootKeyId, rootKey } = await made();
    expect(await works(rootKey)).toBe(200);
    await update({ rootKeyId, enabled: false });
    expect(await works(rootKey)).toBe(401);
    await update({ rootKeyId, enabled: true, expires: 1 });
    expect(await works(rootKey)).toBe(401);
    await update({ rootKeyId, expires: null });
    expect(await works(rootKey)).toBe(200);
    await update({ rootKeyId, permissions: ["api.*.read_api"] });
    expect((await api.call("apis.createApi", { name: "nope" }, { rootKey })).status).toBe(403);
  });

  test("updateRootKey rejects an outdated revision; if none is given, the last write wins", async () => {
    const { rootKeyId } = await made({ name: "first" });
    await update({ rootKeyId, name: "second", revision: 1 });
    const refused = await update({ rootKeyId, name: "third", revision: 1 });
    expect([refused.status, refused.body.error.type.split("/").at(-1)]).toEqual([409, "root_key_changed"]);
    await Promise.all([update({ rootKeyId, name: "fourth" }), update({ rootKeyId, environment: "staging" })]);
    expect(await get(rootKeyId)).toMatchObject({ name: "fourth", environment: "staging", revision: 4 });
  });

  test("only one of two concurrent updateRootKey calls with the same revision succeeds", async () => {
    const { rootKeyId } = await made();
    const tries = Array.from({ length: 5 }, (_, i) => update({ rootKeyId, name: `name ${i}`, revision: 1 }));
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 409, 409, 409, 409]);
    expect((await get(rootKeyId)).revision).toBe(2);
  });

  test("updateRootKey without changes writes nothing", async () => {
    const { rootKeyId } = await made({ environment: "staging", permissions: ["api.*.read_api", "api.*.read_key"] });
    const before = (await api.audit()).length;
    const same = { enabled: true, environment: "staging", permissions: ["api.*.read_key", "api.*.read_api"] };
    expect((await update({ rootKeyId, ...same })).body.data.revision).toBe(1);
    expect(await api.audit()).toHaveLength(before);
  });

  const UPDATE = "workspace.*.update_root_key";
  test.each([
    { name: "a new tuple", change: { permissions: ["api.*.create_api", "api.*.read_api"] }, lacks: "api.*.read_api" },
    { name: "a new life", make: { expires: 1 }, change: { expires: null }, lacks: "api.*.create_api" },
    { name: "a longer life", make: { expires: 1 }, change: { expires: 2 }, lacks: "api.*.create_api" },
    { name: "being enabled", disabled: true, change: { enabled: true }, lacks: "api.*.create_api" },
  ])(
    "updateRootKey by a caller without the permission of the root key cannot grant $name",
    async ({ make = {}, disabled = false, change, lacks }) => {
      const { rootKeyId } = await made(make);
      if (disabled) await update({ rootKeyId, enabled: false });
      const { rootKey } = await caller([UPDATE]);
      const before = await get(rootKeyId);
      const refused = await update({ rootKeyId, ...change }, rootKey);
      expect([refused.status, refused.body.error.detail]).toEqual([403, expect.stringContaining(`lacks ${lacks}.`)]);
      expect(await get(rootKeyId)).toEqual(before);
    },
  );

  test("updateRootKey lets a caller with fewer permissions remove permissions", async () => {
    const { rootKeyId } = await made({ permissions: ["api.*.create_api", "api.*.read_api"] });
    const { rootKey } = await caller([UPDATE]);
    const narrowed = await update({ rootKeyId, permissions: ["api.*.read_api"], enabled: false, expires: 5 }, rootKey);
    expect(narrowed.body.data).toMatchObject({ permissions: ["api.*.read_api"], state: "disabled", expires: 5 });
  });

  test.each([{ enabled: false }, { expires: 4_000_000_000_000 }, { permissions: ["api.*.read_api"] }])(
    "updateRootKey cannot restrict the root key that calls it: %o",
    async (change) => {
      const own = await caller([UPDATE, "api.*.read_api"]);
      const refused = await update({ rootKeyId: own.rootKeyId, ...change }, own.rootKey);
      expect([refused.status, refused.body.error.type.split("/").at(-1)]).toEqual([409, "root_key_is_caller"]);
      expect(await works(own.rootKey)).toBe(200);
      expect((await update({ rootKeyId: own.rootKeyId, name: "my new name" }, own.rootKey)).status).toBe(200);
    },
  );
});

describe("rotateRootKey", () => {
  const rotate = (body: object, rootKey?: string) =>
    api.call("admin.rotateRootKey", { overlap: DAY_MS, ...body }, rootKey === undefined ? {} : { rootKey });

  test("rotateRootKey creates an equivalent successor and keeps both valid during the overlap", async () => {
    const old = await made({ name: "billing", environment: "production", permissions: ["api.*.create_api"] });
    const { data } = (await rotate({ rootKeyId: old.rootKeyId })).body;
    const [before, after] = [await get(old.rootKeyId), await get(data.rootKeyId)];
    expect(after).toMatchObject({
      name: "billing",
      environment: "production",
      permissions: ["api.*.create_api"],
      predecessorId: old.rootKeyId,
      start: data.start,
    });
    expect(after).not.toHaveProperty("expires");
    expect(before).toMatchObject({ successorId: data.rootKeyId, expires: data.predecessorExpiresAt, revision: 2 });
    expect([await works(old.rootKey), await works(data.rootKey)]).toEqual([200, 200]);
    api.advance(DAY_MS + 1000);
    expect([await works(old.rootKey), await works(data.rootKey)]).toEqual([401, 200]);
    api.advance(-DAY_MS - 1000);
    const rows = (await api.audit()).filter(({ targets }) =>
      targets.some(({ id }) => id === data.rootKeyId || id === old.rootKeyId),
    );
    expect(rows.map(({ event }) => event).sort()).toEqual(["rootKey.create", "rootKey.create", "rootKey.update"]);
  });

  test("rotateRootKey without overlap expires the old root key immediately", async () => {
    const old = await made();
    await rotate({ rootKeyId: old.rootKeyId, overlap: 0 });
    api.advance(1);
    expect(await works(old.rootKey)).toBe(401);
  });

  test("rotateRootKey gives the successor the original lifetime, and keeps an earlier expiry of the old root key", async () => {
    const expires = Date.now() + 10 * DAY_MS;
    const old = await made({ expires });
    const { data } = (await rotate({ rootKeyId: old.rootKeyId, overlap: 20 * DAY_MS })).body;
    expect(data.predecessorExpiresAt).toBe(expires);
    expect(data.expires - expires).toBeGreaterThanOrEqual(0);
    expect(data.expires - expires).toBeLessThan(60_000);
    const chosen = (await rotate({ rootKeyId: data.rootKeyId, expires: null })).body.data;
    expect(chosen).not.toHaveProperty("expires");
  });

  test("rotateRootKey succeeds only once until the successor is revoked, even concurrently", async () => {
    const { rootKeyId } = await made();
    const replies = await Promise.all(Array.from({ length: 4 }, () => rotate({ rootKeyId })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    const successor = replies.find(({ status }) => status === 200)?.body.data.rootKeyId;
    await api.data("admin.deleteRootKey", { rootKeyId: successor });
    expect((await rotate({ rootKeyId })).status).toBe(200);
  });

  test("rotateRootKey is denied to a caller that lacks a permission of the root key", async () => {
    const { rootKeyId } = await made();
    const { rootKey } = await caller(["workspace.*.create_root_key", "workspace.*.update_root_key"]);
    const refused = await rotate({ rootKeyId }, rootKey);
    expect([refused.status, refused.body.error.detail]).toEqual([403, expect.stringContaining("api.*.create_api")]);
    expect(await get(rootKeyId)).not.toHaveProperty("successorId");
  });

  test("rotateRootKey can replace the calling root key", async () => {
    const own = await caller(["workspace.*.create_root_key", "workspace.*.update_root_key"]);
    const { data } = (await rotate({ rootKeyId: own.rootKeyId }, own.rootKey)).body;
    expect(await works(data.rootKey)).toBe(200);
  });

  test.each([{ overlap: -1 }, { overlap: 90 * DAY_MS + 1 }, { overlap: 1.5 }, { overlap: undefined }])(
    "rotateRootKey rejects %o",
    async (body) => {
      expect((await rotate({ rootKeyId: "rk_any", ...body })).status).toBe(400);
    },
  );
});

describe("deleteRootKey", () => {
  test("deleteRootKey revokes a root key permanently and immediately", async () => {
    const { rootKeyId, rootKey } = await made({ name: "gone" });
    expect(await works(rootKey)).toBe(200);
    await api.data("admin.deleteRootKey", { rootKeyId });
    expect(await works(rootKey)).toBe(401);
    expect((await api.call("admin.deleteRootKey", { rootKeyId })).status).toBe(404);
    expect((await update({ rootKeyId, enabled: true })).status).toBe(404);
    expect((await api.call("admin.rotateRootKey", { rootKeyId, overlap: 0 })).status).toBe(404);
    expect((await api.audit()).filter(({ event }) => event === "rootKey.delete").at(-1)).toMatchObject({
      targets: [{ type: "rootKey", id: rootKeyId, name: "gone" }],
    });
  });

  test("deleteRootKey can revoke a root key with more permissions, but not the caller's own", async () => {
    const own = await caller(["workspace.*.delete_root_key"]);
    const refused = await api.call("admin.deleteRootKey", { rootKeyId: own.rootKeyId }, { rootKey: own.rootKey });
    expect(refused.status).toBe(409);
    expect(await works(own.rootKey)).toBe(200);
    const { rootKeyId } = await made();
    expect((await api.call("admin.deleteRootKey", { rootKeyId }, { rootKey: own.rootKey })).status).toBe(200);
  });
});
