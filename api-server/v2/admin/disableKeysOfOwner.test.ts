import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let first: string;
let second: string;
beforeAll(async () => {
  t = await buildTestApp();
  first = (await t.data("apis.createApi", { name: "first" })).apiId;
  second = (await t.data("apis.createApi", { name: "second" })).apiId;
});
afterAll(() => t.close());

const create = (externalId: string, body: object = {}) =>
  t.data("keys.createKey", { apiId: first, externalId, ...body });
const disable = (body: object, rootKey?: string) =>
  t.call("admin.disableKeysOfOwner", body, rootKey === undefined ? {} : { rootKey });
const isEnabled = async (keyId: string): Promise<boolean> => (await t.data("keys.getKey", { keyId })).enabled;

test("disableKeysOfOwner dry run counts exactly the keys that the real run then disables", async () => {
  const keys = [
    await create("leaked"),
    await create("leaked", { apiId: second }),
    await create("leaked", { credits: { remaining: 3 } }),
  ];
  const already = await create("leaked", { enabled: false });
  const others = await create("leaked.other");
  const managed = await create("leaked");
  await t.deps.db.query("update keys set manager = 'main/ApiKey/shop/x' where id = $1", [managed.keyId]);
  const counted = { changed: 3, left: 0, unchanged: 1, managed: 1 };
  const managedKeys = [{ keyId: managed.keyId, manager: "main/ApiKey/shop/x" }];
  const before = await t.audit();
  const dry = await disable({ externalId: "leaked", dryRun: true });
  expect(dry.body.data).toEqual({ ...counted, managedKeys });
  expect(await t.audit()).toEqual(before);
  for (const { keyId } of keys) expect(await isEnabled(keyId)).toBe(true);

  expect((await disable({ externalId: "leaked" })).body.data).toEqual({ ...counted, managedKeys });
  for (const { key } of keys) expect((await t.data("keys.verifyKey", { key })).code).toBe("DISABLED");
  expect(await isEnabled(managed.keyId)).toBe(true);
  expect(await isEnabled(others.keyId)).toBe(true);
  const rows = (await t.audit()).slice(before.length);
  expect(new Set(rows.map(({ targets }) => targets[0]?.id))).toEqual(new Set(keys.map(({ keyId }) => keyId)));
  expect(rows.every(({ event }) => event === "key.update")).toBe(true);
  const { rows: said } = await t.deps.db.query(
    "select distinct before, after from audit_log where description like 'Disabled key % with all of its owner'",
  );
  expect(said).toEqual([{ before: { enabled: true }, after: { enabled: false } }]);
  const { rows: ofCredits } = await t.deps.db.query("select granted from key_credits where key_id = $1", [
    keys[2]?.keyId,
  ]);
  expect(ofCredits).toEqual([{ granted: 3 }]);

  expect((await disable({ externalId: "leaked", enabled: true })).body.data).toMatchObject({
    changed: 4,
    unchanged: 0,
  });
  expect(await isEnabled(already.keyId)).toBe(true);
});

test("disableKeysOfOwner with an API disables only the keys of that API", async () => {
  const [one, two] = [await create("apart"), await create("apart", { apiId: second })];
  expect((await disable({ externalId: "apart", apiId: second })).body.data).toMatchObject({ changed: 1 });
  expect([await isEnabled(one.keyId), await isEnabled(two.keyId)]).toEqual([true, false]);
});

test("disableKeysOfOwner without permission for one of the keys disables no key, and the error names the API", async () => {
  const [one, two] = [await create("mixed"), await create("mixed", { apiId: second })];
  const rootKey = await t.rootKey([`api.${first}.update_key`]);
  const refused = await disable({ externalId: "mixed" }, rootKey);
  expect(refused.status).toBe(403);
  expect(refused.body.error.detail).toContain(`api.${second}.update_key`);
  expect([await isEnabled(one.keyId), await isEnabled(two.keyId)]).toEqual([true, true]);
  expect((await disable({ externalId: "mixed", apiId: first }, rootKey)).body.data).toMatchObject({ changed: 1 });
});

test("disableKeysOfOwner disables each of thousands of keys exactly once, even with concurrent calls", async () => {
  await create("huge");
  await t.deps.db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, identity_id, created_at)
     select 'key_huge' || n, k.workspace_id, k.api_id, 'huge' || n, 'huge', k.identity_id, 1
       from keys k
       join identities i on i.id = k.identity_id and i.external_id = 'huge'
      cross join generate_series(1, 5600) as n`,
  );
  const before = (await t.audit()).length;
  const one = (await disable({ externalId: "huge" })).body.data;
  expect(one).toMatchObject({ changed: 5000, left: 601 });
  const rest = await Promise.all([disable({ externalId: "huge" }), disable({ externalId: "huge" })]);
  expect(rest.map(({ body }) => body.data.changed).reduce((sum, n) => sum + n, 0)).toBe(601);
  expect((await t.audit()).length - before).toBe(5601);
  expect((await disable({ externalId: "huge", dryRun: true })).body.data).toMatchObject({
    changed: 0,
    unchanged: 5601,
  });
});

test("disableKeysOfOwner finds v1 owners and ignores other workspaces and empty owners", async () => {
  const stranger = await t.makeWorkspace();
  const theirs = await t.data("apis.createApi", { name: "theirs" }, { rootKey: stranger.rootKey });
  const their = await t.data(
    "keys.createKey",
    { apiId: theirs.apiId, externalId: "told" },
    { rootKey: stranger.rootKey },
  );
  const told = await t.data("keys.createKey", { apiId: first });
  await t.deps.db.query("update keys set owner_id = 'told' where id = $1", [told.keyId]);
  expect((await disable({ externalId: "told" })).body.data).toMatchObject({ changed: 1 });
  expect(await isEnabled(told.keyId)).toBe(false);
  expect((await t.data("keys.getKey", { keyId: their.keyId }, { rootKey: stranger.rootKey })).enabled).toBe(true);
  expect((await disable({ externalId: "no.one" })).body.data).toMatchObject({ changed: 0, managed: 0 });
});
