import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

describe("apis.createApi", () => {
  test("makes an API that v2 sees, too, and says so in the audit log", async () => {
    const created = await t.data("v1/apis.createApi", { name: "payments" });
    expect(created).toEqual({ apiId: expect.stringMatching(/^api_/), name: "payments" });
    expect(await t.data("apis.getApi", { apiId: created.apiId })).toEqual({ id: created.apiId, name: "payments" });
    const [row] = (await t.audit()).filter(({ targets }) => targets.some(({ id }) => id === created.apiId));
    expect(row).toMatchObject({ event: "api.create", actor: { type: "rootkey" }, request_id: expect.any(String) });
  });

  test.each([
    { name: "ab", status: 400 },
    { name: "abc", status: 200 },
    { name: "ü".repeat(255), status: 200 },
    { name: "x".repeat(256), status: 400 },
  ])("a name of $name.length characters: $status", async ({ name, status }) => {
    expect((await t.call("v1/apis.createApi", { name })).status).toBe(status);
  });
});

describe("apis.getApi", () => {
  test("returns id, workspace and name of an API that v2 made", async () => {
    const { apiId } = await t.data("apis.createApi", { name: "orders" });
    const workspaceId = t.workspace.id;
    expect(await t.data("v1/apis.getApi", { apiId })).toEqual({ id: apiId, workspaceId, name: "orders" });
  });

  test("an API that is not there is 404 NOT_FOUND", async () => {
    const reply = await t.call("v1/apis.getApi", { apiId: "api_none" });
    expect(reply.status).toBe(404);
    expect(reply.body.error).toMatchObject({
      code: "NOT_FOUND",
      message: "There is no API api_none in the workspace.",
    });
  });
});
