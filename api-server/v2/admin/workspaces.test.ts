import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

const create = (body: object) => api.call("admin.createWorkspace", body);

describe("workspaces", () => {
  test("are made once for a name, with a row in the log of the new one", async () => {
    const { body } = await create({ name: "team-shop", quotaPerMinute: 60 });
    const { workspaceId } = body.data;
    expect(body.data).toMatchObject({ name: "team-shop", enabled: true, quotaPerMinute: 60 });
    expect((await create({ name: "team-shop" })).status).toBe(409);
    const both = await Promise.all([create({ name: "raced" }), create({ name: "raced" })]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await api.audit(workspaceId)).toMatchObject([{ event: "workspace.create", actor: { type: "rootkey" } }]);
  });

  test.each(["", "ws_like_an_id", "with space", "<b>", "-a", "x".repeat(64)])("none is called %o", async (name) => {
    expect((await create({ name })).status).toBe(400);
  });

  test("are listed page by page, and found by a part of the name", async () => {
    const before = (await api.data("admin.listWorkspaces", {})).length;
    for (let i = 0; i < 4; i++) await create({ name: `Listed-${i}` });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await api.call("admin.listWorkspaces", { limit: 2, cursor });
      seen.push(...body.data.map((one: { workspaceId: string }) => one.workspaceId));
      ({ cursor } = body.pagination);
    } while (cursor !== undefined);
    expect(new Set(seen).size).toBe(before + 4);
    const found = await api.data("admin.listWorkspaces", { search: "lISTED-3" });
    expect(found.map(({ name }: { name: string }) => name)).toEqual(["Listed-3"]);
  });

  test("are disabled and enabled again, in force in the next call", async () => {
    const { id: workspaceId, rootKey } = await api.makeWorkspace();
    const status = async () => (await api.call("workspaces.getWorkspace", {}, { rootKey })).status;
    expect(await status()).toBe(200);
    const off = await api.data("admin.updateWorkspace", { workspaceId, enabled: false });
    expect(off).toMatchObject({ enabled: false, quotaPerMinute: null });
    expect(await status()).toBe(403);
    await api.data("admin.updateWorkspace", { workspaceId, enabled: true, quotaPerMinute: 0 });
    expect(await status()).toBe(429);
    await api.data("admin.updateWorkspace", { workspaceId, quotaPerMinute: null });
    expect(await status()).toBe(200);
    const events = (await api.audit(workspaceId)).map(({ event }) => event);
    expect(events).toEqual(["workspace.update", "workspace.update", "workspace.update"]);
  });

  test.each([{ quotaPerMinute: -1 }, { quotaPerMinute: 1_000_000_001 }, { name: "renamed" }])(
    "refuses %o",
    async (body) => {
      expect((await api.call("admin.updateWorkspace", { workspaceId: api.workspace.id, ...body })).status).toBe(400);
    },
  );

  test("that do not exist are 404, also by the name of one", async () => {
    await create({ name: "by_name" });
    for (const workspaceId of ["ws_unknown", "by_name"]) {
      expect((await api.call("admin.updateWorkspace", { workspaceId, enabled: false })).status).toBe(404);
    }
  });
});
