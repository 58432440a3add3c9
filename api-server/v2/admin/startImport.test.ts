import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "billing" }));
});
afterAll(() => t.close());

const hashOf = (key: string): string => createHash("sha256").update(key).digest("base64");
const start = (body: object = {}, as?: { rootKey: string }) =>
  t.call("admin.startImport", { apiId, name: "keys of 2025", ...body }, as);

describe("startImport", () => {
  test("startImport creates a migration that keys.migrateKeys accepts for hashes of complete keys", async () => {
    const { body } = await start({ name: "Schlüssel <b>2025</b>" });
    const { migrationId } = body.data;
    const key = "old_key_ünïcode";
    const imported = await t.data("keys.migrateKeys", { migrationId, apiId, keys: [{ hash: hashOf(key) }] });
    expect(imported.failed).toEqual([]);
    expect((await t.data("keys.verifyKey", { key, migrationId })).code).toBe("VALID");
    const [row] = (await t.audit()).filter(({ event }) => event === "migration.create");
    expect(row?.targets).toEqual([{ type: "migration", id: migrationId, name: "Schlüssel <b>2025</b>" }]);
  });

  test("startImport creates a new migration each time", async () => {
    const [one, other] = [await start(), await start()];
    expect(one.body.data.migrationId).not.toBe(other.body.data.migrationId);
  });

  test("startImport requires the permission to create keys, and an API in the caller's workspace", async () => {
    const stranger = await t.makeWorkspace();
    expect((await start({}, stranger)).status).toBe(404);
    const { apiId: second } = await t.data("apis.createApi", { name: "second" });
    const rootKey = await t.rootKey([`api.${second}.create_key`]);
    expect((await start({}, { rootKey })).status).toBe(403);
    expect((await start({ apiId: second }, { rootKey })).status).toBe(200);
  });

  test("startImport migration is visible only in its workspace", async () => {
    const { body } = await start();
    const stranger = await t.makeWorkspace();
    const { apiId: theirs } = await t.data("apis.createApi", { name: "theirs" }, stranger);
    const call = { migrationId: body.data.migrationId, apiId: theirs, keys: [{ hash: hashOf("theirs") }] };
    expect((await t.call("keys.migrateKeys", call, stranger)).status).toBe(404);
  });

  test.each([{ name: "" }, { name: "x".repeat(256) }, { apiId: "" }])("startImport rejects %o", async (body) => {
    expect((await start(body)).status).toBe(400);
  });
});
