import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import { buildApp } from "../app.ts";
import { removeRootKeyUsage } from "../db/retention.ts";
import { listRootKeyUsage } from "../db/root-key-usage.ts";
import { buildTestApp, type TestApp } from "../test/app.ts";
import { createRootKeyUsage } from "./root-key-usage.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

const today = (): string => utcDate(api.deps.nowMs());

/** A root key, and how to store and read what it was asked for. */
async function aRootKey(permissions: readonly string[], workspaceId = api.workspace.id) {
  const name = `key ${Math.random()}`;
  const rootKey = await api.rootKey(permissions, { workspaceId, name });
  const text = "select r.id from root_keys r where r.workspace_id = $1 and r.name = $2";
  const { rows } = await api.deps.db.query<{ id: string }>(text, [workspaceId, name]);
  const rootKeyId = rows[0]?.id ?? "";
  const stored = async () => {
    const uses = await listRootKeyUsage(api.deps.db, { workspaceId, rootKeyIds: [rootKeyId] });
    return Object.fromEntries(uses.map((use) => [use.tuple, [use.last_used_on, use.only_id]]));
  };
  return { rootKey, rootKeyId, stored };
}
const store = () => api.deps.rootKeyUsage.store(api.deps.db);

describe("usage of a root key", () => {
  test("root key usage stores the tuple that granted the permission, and the object id if there was only one", async () => {
    const [one, two] = [
      await api.data("apis.createApi", { name: "one" }),
      await api.data("apis.createApi", { name: "two" }),
    ];
    const { rootKey, stored } = await aRootKey(["api.*.read_api", `api.${one.apiId}.update_api`, "rbac.*.read_role"]);
    await api.data("apis.getApi", { apiId: one.apiId }, { rootKey });
    await api.data("apis.updateApi", { apiId: one.apiId, name: "renamed" }, { rootKey });
    await store();
    expect(await stored()).toEqual({
      "": [today(), null],
      "api.*.read_api": [today(), one.apiId],
      [`api.${one.apiId}.update_api`]: [today(), one.apiId],
    });
    await api.data("apis.getApi", { apiId: two.apiId }, { rootKey });
    await store();
    expect((await stored())["api.*.read_api"]).toEqual([today(), null]);
    await api.data("apis.getApi", { apiId: one.apiId }, { rootKey });
    expect(await store()).toBe(0);
    expect((await stored())["api.*.read_api"]).toEqual([today(), null]);
  });

  test("root key usage of a list request stores no object id", async () => {
    const { rootKey, stored } = await aRootKey(["identity.*.read_identity", "ratelimit.*.read_namespace"]);
    await api.data("identities.listIdentities", {}, { rootKey });
    await api.data("ratelimit.listNamespaces", {}, { rootKey });
    await store();
    expect(await stored()).toMatchObject({
      "identity.*.read_identity": [today(), null],
      "ratelimit.*.read_namespace": [today(), null],
    });
  });

  test("root key usage includes permissions granted to another root key, but not those that a rejected call lacked", async () => {
    const { rootKey, stored } = await aRootKey(["workspace.*.create_root_key", "api.*.read_api", "api.*.read_key"]);
    const body = { name: "child", permissions: ["api.api_1.read_api"] };
    await api.data("admin.createRootKey", body, { rootKey });
    expect((await api.call("apis.createApi", { name: "not allowed" }, { rootKey })).status).toBe(403);
    await store();
    expect(Object.keys(await stored()).sort()).toEqual(["", "api.*.read_api", "workspace.*.create_root_key"]);
  });

  test("root key usage includes a rejected call", async () => {
    const { rootKey, stored } = await aRootKey([]);
    expect((await api.call("apis.createApi", { name: "not allowed" }, { rootKey })).status).toBe(403);
    await store();
    expect(await stored()).toEqual({ "": [today(), null] });
  });

  test("root key usage of two api-servers is merged", async () => {
    const other = createRootKeyUsage({ nowMs: api.deps.nowMs });
    const there = await buildApp({ ...api.deps, rootKeyUsage: other });
    const [one, two] = [
      await api.data("apis.createApi", { name: "one" }),
      await api.data("apis.createApi", { name: "two" }),
    ];
    const { rootKey, stored } = await aRootKey(["api.*.read_api", "rbac.*.read_role"]);
    const callThere = (path: string, payload: object) =>
      there.inject({ method: "POST", url: `/v2/${path}`, payload, headers: { authorization: `Bearer ${rootKey}` } });
    await api.data("apis.getApi", { apiId: one.apiId }, { rootKey });
    expect((await callThere("apis.getApi", { apiId: two.apiId })).statusCode).toBe(200);
    expect((await callThere("permissions.listRoles", {})).statusCode).toBe(200);
    await Promise.all([store(), other.store(api.deps.db)]);
    expect(await stored()).toEqual({
      "": [today(), null],
      "api.*.read_api": [today(), null],
      "rbac.*.read_role": [today(), null],
    });
    await there.close();
  });

  test("root key usage does not invalidate cached root keys", async () => {
    const { rootKey, rootKeyId } = await aRootKey(["rbac.*.read_role"]);
    await api.data("permissions.listRoles", {}, { rootKey });
    const marks = async () =>
      (await api.deps.db.query("select count(*) as n from outbox where workspace_id = $1", [api.workspace.id])).rows[0]
        .n;
    const before = await marks();
    expect(await store()).toBeGreaterThan(0);
    expect(await marks()).toBe(before);
    expect(rootKeyId).not.toBe("");
  });
});

describe("storing", () => {
  test("root key usage is stored completely after a database failure", async () => {
    const uses = createRootKeyUsage({ nowMs: api.deps.nowMs });
    const { rootKeyId, stored } = await aRootKey([]);
    const notes = uses.of(rootKeyId);
    notes.note("api.*.read_api", "api_1");
    const away = { query: () => Promise.reject(new Error("away")) } as unknown as Pool;
    await expect(uses.store(away)).rejects.toThrow("away");
    notes.note("api.*.read_api", "api_2");
    notes.note("api.*.read_key");
    await uses.store(api.deps.db);
    expect(await stored()).toEqual({ "api.*.read_api": [today(), null], "api.*.read_key": [today(), null] });
  });

  test("root key usage is stored again on the next day with the later time", async () => {
    let nowMs = Date.UTC(2026, 0, 1, 23, 59);
    const uses = createRootKeyUsage({ nowMs: () => nowMs });
    const { rootKeyId, stored } = await aRootKey([]);
    const notes = uses.of(rootKeyId);
    notes.note("api.*.read_api", "api_1");
    await uses.store(api.deps.db);
    notes.note("api.*.read_api", "api_1");
    expect(await uses.store(api.deps.db)).toBe(0);
    nowMs += DAY_MS;
    await uses.store(api.deps.db);
    notes.note("api.*.read_api", "api_1");
    expect(await uses.store(api.deps.db)).toBe(1);
    expect(await stored()).toEqual({ "api.*.read_api": ["2026-01-02", "api_1"] });
    // One that is late says nothing new.
    const late = createRootKeyUsage({ nowMs: () => nowMs - DAY_MS });
    late.of(rootKeyId).note("api.*.read_api", "api_1");
    await late.store(api.deps.db);
    expect(await stored()).toEqual({ "api.*.read_api": ["2026-01-02", "api_1"] });
  });

  test("root key usage stores at most 20,000 entries per write", async () => {
    const uses = createRootKeyUsage({ nowMs: api.deps.nowMs });
    const { rootKeyId } = await aRootKey([]);
    const notes = uses.of(rootKeyId);
    const noteAll = () => {
      for (let i = 0; i < 20_100; i++) notes.note(`api.api_${i}.read_api`);
    };
    noteAll();
    expect(await uses.store(api.deps.db)).toBe(20_000);
    noteAll();
    expect(await uses.store(api.deps.db)).toBe(100);
  });

  test("root key usage of deleted root keys is skipped", async () => {
    const uses = createRootKeyUsage({ nowMs: api.deps.nowMs });
    const { rootKeyId, stored } = await aRootKey([]);
    uses.of("rk_of_another_database").note("api.*.read_api");
    uses.of(rootKeyId).note("api.*.read_api");
    await uses.store(api.deps.db);
    expect(await stored()).toEqual({ "api.*.read_api": [today(), null] });
  });
});

test("admin.getRootKey returns used permissions and suggests narrower ones after 30 days", async () => {
  const { id: workspaceId } = await api.makeWorkspace();
  const admin = { rootKey: await api.rootKey(["workspace.*.read_root_key"], { workspaceId }) };
  const { rootKey, rootKeyId } = await aRootKey(
    ["api.*.create_api", "api.*.read_api", "rbac.*.read_role"],
    workspaceId,
  );
  const get = () => api.data("admin.getRootKey", { rootKeyId }, admin);
  const { apiId } = await api.data("apis.createApi", { name: "its own" }, { rootKey });
  api.advance(29 * DAY_MS);
  const use = async () => {
    // The first round learns the day.
    await store();
    await api.data("apis.getApi", { apiId }, { rootKey });
    await store();
  };
  await use();
  expect(await get()).toMatchObject({ findings: [], lastUsedOn: today() });
  expect(await get()).not.toHaveProperty("narrowTo");
  api.advance(3 * DAY_MS);
  await use();
  expect(await get()).toMatchObject({
    uses: [
      { permission: "api.*.create_api", lastUsedOn: utcDate(api.deps.nowMs() - 32 * DAY_MS) },
      { permission: "api.*.read_api", lastUsedOn: today(), onlyId: apiId },
    ],
    findings: [
      { kind: "unused_permissions", permissions: ["api.*.create_api", "rbac.*.read_role"] },
      { kind: "too_wide", permissions: ["api.*.read_api"] },
    ],
    narrowTo: [`api.${apiId}.read_api`],
  });
  api.advance(-32 * DAY_MS);
});

test("root key usage is deleted after revocation or removal of the permission", async () => {
  const { id: workspaceId } = await api.makeWorkspace();
  const [revoked, holder] = [
    await aRootKey(["api.*.read_api"], workspaceId),
    await aRootKey(["api.*.read_api"], workspaceId),
  ];
  const uses = createRootKeyUsage({ nowMs: () => 1_000_000 });
  uses.of(revoked.rootKeyId).note("api.*.read_api");
  for (const tuple of ["", "api.*.read_api", "api.*.read_key"]) uses.of(holder.rootKeyId).note(tuple);
  await uses.store(api.deps.db);
  await api.deps.db.query("update root_keys set deleted_at = 5 where id = $1", [revoked.rootKeyId]);
  const remove = (beforeMs: number) => removeRootKeyUsage(api.deps.db, { workspaceId, beforeMs, rowsMax: 100 });
  expect(await remove(5)).toBe(0);
  expect(await remove(10 * DAY_MS)).toBe(2);
  expect([await revoked.stored(), Object.keys(await holder.stored())]).toEqual([{}, ["", "api.*.read_api"]]);
});
