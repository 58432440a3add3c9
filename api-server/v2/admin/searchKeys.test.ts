import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
/** Two APIs of one workspace. */
let first: string;
let second: string;
beforeAll(async () => {
  t = await buildTestApp();
  first = (await t.data("apis.createApi", { name: "Ünïcödé 支付 100%" })).apiId;
  second = (await t.data("apis.createApi", { name: "other" })).apiId;
});
afterAll(() => t.close());

type Found = { readonly keyId: string; readonly apiId: string };

const create = (body: object) => t.data("keys.createKey", { apiId: first, ...body });
const search = async (body: object, rootKey?: string): Promise<string[]> =>
  (await t.data("admin.searchKeys", body, rootKey === undefined ? {} : { rootKey })).map((key: Found) => key.keyId);

test("searchKeys finds a key by each attribute without returning secrets or large fields", async () => {
  const { keyId, key } = await create({
    prefix: "findme",
    name: "Ключ 50% _ok",
    externalId: "owner.1",
    meta: { hidden: "meta" },
    credits: { remaining: 7 },
    expires: t.deps.nowMs() + 60_000,
    permissions: ["search.direct"],
  });
  const hash = createHash("sha256").update(key).digest("base64");
  for (const by of [
    { keyId },
    { hash },
    { externalId: "owner.1" },
    { start: "findme_" },
    { name: "Ключ 50%" },
    { apiId: first, name: "50% _" },
    { permission: "SEARCH.direct" },
    { limited: true },
  ]) {
    expect(await search(by), JSON.stringify(by)).toEqual([keyId]);
  }
  const [found] = await t.data("admin.searchKeys", { keyId });
  expect(found).toEqual({
    keyId,
    apiId: first,
    start: expect.stringMatching(/^findme_/),
    name: "Ключ 50% _ok",
    externalId: "owner.1",
    enabled: true,
    expires: expect.any(Number),
    remaining: 7,
    createdAt: expect.any(Number),
  });
  for (const by of [{ keyId: `${keyId}x` }, { hash: `${hash}x` }, { externalId: "owner" }, { start: "FINDME" }]) {
    expect(await search(by), JSON.stringify(by)).toEqual([]);
  }
});

test("searchKeys filters by disabled, expired and managed state, and by the opposite states", async () => {
  const off = await create({ prefix: "state", enabled: false });
  const late = await create({ prefix: "state", expires: 1 });
  const good = await create({ prefix: "state" });
  await t.deps.db.query("update keys set manager = 'main/ApiKey/shop/x' where id = $1", [good.keyId]);
  const among = (body: object) => search({ start: "state_", ...body }).then((ids) => new Set(ids));
  expect(await among({ enabled: false })).toEqual(new Set([off.keyId]));
  expect(await among({ enabled: true })).toEqual(new Set([late.keyId, good.keyId]));
  expect(await among({ expired: true })).toEqual(new Set([late.keyId]));
  expect(await among({ expired: false })).toEqual(new Set([off.keyId, good.keyId]));
  expect(await among({ managed: true })).toEqual(new Set([good.keyId]));
  expect(await among({ managed: false, enabled: true, expired: false })).toEqual(new Set());
});

test("searchKeys with expiresBefore returns live, enabled keys sorted by expiry, even in combination with other filters", async () => {
  const now = t.deps.nowMs();
  const inDays = (days: number): number => now + days * 86_400_000;
  const make = (expires: number | undefined, body: object = {}) =>
    create({ prefix: "soon", ...(expires === undefined ? {} : { expires }), ...body });
  const late = await make(inDays(8));
  const ties = [await make(inDays(3)), await make(inDays(3), { externalId: "soon.owner" }), await make(inDays(3))];
  const next = await make(inDays(1), { apiId: second });
  const others = [
    await make(undefined),
    await make(now - 1),
    await make(inDays(2), { enabled: false }),
    await make(inDays(2)),
  ];
  await t.data("keys.deleteKey", { keyId: others[3]?.keyId });
  const tied = ties.map(({ keyId }) => keyId).sort();
  const soon = { start: "soon_", expiresBefore: inDays(8) };
  expect(await search(soon)).toEqual([next.keyId, ...tied]);
  expect(await search({ ...soon, expiresBefore: inDays(8) + 1 })).toEqual([next.keyId, ...tied, late.keyId]);
  expect(await search({ ...soon, apiId: first })).toEqual(tied);
  for (const other of [{ enabled: false }, { expired: true }, { expiresBefore: now }, { expiresBefore: 0 }]) {
    expect(await search({ ...soon, ...other }), JSON.stringify(other)).toEqual([]);
  }
  expect(await search({ ...soon, apiId: second })).toEqual([next.keyId]);
  expect(await search({ ...soon, externalId: "soon.owner", enabled: true, expired: false })).toEqual([ties[1]?.keyId]);
  const paged: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const reply = await t.call("admin.searchKeys", { ...soon, limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    paged.push(...reply.body.data.map((key: Found) => key.keyId));
    // A key that expires earlier belongs to a page that was read, and one that expires later to a page to come.
    if (cursor === undefined) await make(inDays(0.5));
    ({ cursor } = reply.body.pagination);
    if (!reply.body.pagination.hasMore) break;
  }
  expect(paged).toEqual([next.keyId, ...tied]);
  const foreign = await t.makeWorkspace();
  expect(await search({ expiresBefore: inDays(400) }, foreign.rootKey)).toEqual([]);
  for (const expiresBefore of [-1, 1.5, "soon", 5_000_000_000_000]) {
    expect((await t.call("admin.searchKeys", { expiresBefore })).status, String(expiresBefore)).toBe(400);
  }
});

test("searchKeys filters by role name or id, and finds no keys for an unknown role", async () => {
  const { roleId } = await t.data("permissions.createRole", { name: "search-role", permissions: ["search.of-role"] });
  const { keyId } = await create({ roles: ["search-role"] });
  for (const role of ["search-role", "SEARCH-ROLE", roleId]) expect(await search({ role })).toEqual([keyId]);
  expect(await search({ permission: "search.of-role" })).toEqual([keyId]);
  expect(await search({ role: "no-such-role" })).toEqual([]);
  expect(await search({ permission: "no.such.permission" })).toEqual([]);
});

test("searchKeys pages through keys created in the same millisecond without duplicates or gaps", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 7; i++) ids.push((await create({ prefix: "page" })).keyId);
  await t.deps.db.query("update keys set created_at = 5 where id = any ($1)", [ids]);
  const seen: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const body = { start: "page_", limit: 3, ...(cursor === undefined ? {} : { cursor }) };
    const reply = await t.call("admin.searchKeys", body);
    seen.push(...reply.body.data.map((key: Found) => key.keyId));
    if (cursor === undefined)
      await create({ prefix: "page" }).then(({ keyId }) => t.data("keys.deleteKey", { keyId: seen[0] ?? keyId }));
    ({ cursor } = reply.body.pagination);
    if (!reply.body.pagination.hasMore) break;
  }
  expect(seen).toEqual(ids.toSorted().reverse());
});

describe("a root key with ids", () => {
  test("searchKeys with permissions for some APIs returns only the keys of these APIs", async () => {
    const [mine, theirs] = [await create({ prefix: "scoped" }), await create({ apiId: second, prefix: "scoped" })];
    const both = { start: "scoped_" };
    expect(new Set(await search(both))).toEqual(new Set([mine.keyId, theirs.keyId]));
    const rootKey = await t.rootKey([`api.${second}.read_key`, "api.api_of_no_one.read_key"]);
    expect(await search(both, rootKey)).toEqual([theirs.keyId]);
    expect(await search({ hash: createHash("sha256").update(mine.key).digest("base64") }, rootKey)).toEqual([]);
    expect((await t.call("admin.searchKeys", { apiId: first }, { rootKey })).status).toBe(403);
  });

  test("API list with permissions for some APIs shows only these APIs and their key counts", async () => {
    const { apiId } = await t.data("apis.createApi", { name: "Counted 支付" });
    for (let i = 0; i < 3; i++) await create({ apiId });
    const gone = await create({ apiId });
    await t.data("keys.deleteKey", { keyId: gone.keyId });
    const rootKey = await t.rootKey([`api.${apiId}.read_api`]);
    const all = await t.data("admin.listApis", {}, { rootKey });
    expect(all).toEqual([
      {
        apiId,
        name: "Counted 支付",
        keys: { count: 3, hasMore: false },
        deleteProtection: false,
        keyEncryption: false,
        createdAt: expect.any(Number),
      },
    ]);
    for (const part of ["支付", "COUNTED", apiId.slice(4, 9)]) {
      expect(await t.data("admin.listApis", { search: part }, { rootKey })).toEqual(all);
    }
    expect(await t.data("admin.listApis", { search: "%" }, { rootKey })).toEqual([]);
  });
});

test("searchKeys excludes deleted keys and keys of deleted APIs", async () => {
  const { apiId } = await t.data("apis.createApi", { name: "short-lived" });
  const [orphan, deleted] = [await create({ apiId, prefix: "gone" }), await create({ prefix: "gone" })];
  await t.data("keys.deleteKey", { keyId: deleted.keyId });
  expect(await search({ start: "gone_" })).toEqual([orphan.keyId]);
  await t.data("apis.deleteApi", { apiId });
  expect(await search({ start: "gone_" })).toEqual([]);
  expect((await t.call("admin.searchKeys", { apiId })).status).toBe(404);
});
