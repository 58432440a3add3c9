import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

const create = (body: object) => api.call("admin.createWorkspace", body);

describe("workspaces", () => {
  test("createWorkspace creates one workspace per name and writes to the audit log of the new workspace", async () => {
    const { body } = await create({ name: "team-shop", quotaPerMinute: 60 });
    const { workspaceId } = body.data;
    expect(body.data).toMatchObject({ name: "team-shop", enabled: true, quotaPerMinute: 60 });
    expect((await create({ name: "team-shop" })).status).toBe(409);
    const both = await Promise.all([create({ name: "raced" }), create({ name: "raced" })]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await api.audit(workspaceId)).toMatchObject([{ event: "workspace.create", actor: { type: "rootkey" } }]);
  });

  test.each(["", "ws_like_an_id", "with space", "<b>", "-a", "x".repeat(64)])(
    "createWorkspace rejects the name %o",
    async (name) => {
      expect((await create({ name })).status).toBe(400);
    },
  );

  test("listWorkspaces returns workspaces in pages and searches them by name", async () => {
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

  test("updateWorkspace disables or enables a workspace with effect from the next call", async () => {
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

  test("updateWorkspace renames a workspace to a unique name and frees the old name", async () => {
    const { body } = await create({ name: "before" });
    const { workspaceId } = body.data;
    await create({ name: "taken" });
    const rename = (name: string) => api.call("admin.updateWorkspace", { workspaceId, name });
    expect((await rename("after")).body.data).toMatchObject({ workspaceId, name: "after", enabled: true });
    const refused = await rename("taken");
    expect([refused.status, refused.body.error.detail]).toEqual([409, "A workspace named taken already exists."]);
    expect((await rename("after")).status).toBe(200);
    expect(await api.data("admin.listWorkspaces", { search: "before" })).toEqual([]);
    // What changed twice was written once.
    expect((await api.audit(workspaceId)).map(({ event }) => event)).toEqual(["workspace.create", "workspace.update"]);
  });

  test("updateWorkspace rejects renaming the default workspace", async () => {
    const { body } = await create({ name: "default" });
    const { workspaceId } = body.data;
    const refused = await api.call("admin.updateWorkspace", { workspaceId, name: "main", enabled: false });
    expect([refused.status, refused.body.error.type.split("/").at(-1)]).toEqual([409, "workspace_name_reserved"]);
    const same = await api.data("admin.updateWorkspace", { workspaceId, name: "default", quotaPerMinute: 5 });
    expect(same).toMatchObject({ name: "default", enabled: true, quotaPerMinute: 5 });
  });

  test.each([{ quotaPerMinute: -1 }, { quotaPerMinute: 1_000_000_001 }, { name: "ws_like_an_id" }, { name: "<b>" }])(
    "updateWorkspace rejects %o",
    async (body) => {
      expect((await api.call("admin.updateWorkspace", { workspaceId: api.workspace.id, ...body })).status).toBe(400);
    },
  );

  test("unknown workspace gets 404, even if its id is the name of an existing workspace", async () => {
    await create({ name: "by_name" });
    for (const workspaceId of ["ws_unknown", "by_name"]) {
      expect((await api.call("admin.updateWorkspace", { workspaceId, enabled: false })).status).toBe(404);
    }
  });
});

describe("the last enabled workspace", () => {
  let alone: TestApp;
  beforeAll(async () => {
    alone = await buildTestApp();
  });
  afterAll(() => alone.close());
  const update = async (workspaceId: string, body: object, rootKey = alone.workspace.rootKey) => {
    const reply = await alone.call("admin.updateWorkspace", { workspaceId, ...body }, { rootKey });
    return reply.status === 200 ? 200 : reply.body.error.type.split("/").at(-1);
  };

  test.each([{ enabled: false }, { quotaPerMinute: 0 }])(
    "last enabled workspace cannot be disabled by %o, but other workspaces can",
    async (closing) => {
      const { id } = alone.workspace;
      expect(await update(id, closing)).toBe("last_enabled_workspace");
      expect(await update(id, { quotaPerMinute: 1_000_000 })).toBe(200);
      const { body } = await alone.call("admin.createWorkspace", { name: `other-${Object.keys(closing)[0]}` });
      expect(await update(body.data.workspaceId, closing)).toBe(200);
      // One that is closed does not count.
      expect(await update(id, closing)).toBe("last_enabled_workspace");
      expect(await update(id, { ...closing, enabled: true, quotaPerMinute: null })).toBe(200);
      expect((await alone.audit()).filter(({ event }) => event === "workspace.update").length).toBeGreaterThan(0);
    },
  );

  test("one of the last two workspaces stays enabled when both are disabled concurrently", async () => {
    const [one, two] = await Promise.all([alone.makeWorkspace(), alone.makeWorkspace()]);
    const installation = ["installation.*.update_workspace"];
    const keys = await Promise.all([one, two].map(({ id }) => alone.rootKey(installation, { workspaceId: id })));
    expect(await update(alone.workspace.id, { enabled: false })).toBe(200);
    const closed = await Promise.all([
      update(one.id, { enabled: false }, keys[0]),
      update(two.id, { enabled: false }, keys[1]),
    ]);
    expect(closed.map(String).sort()).toEqual(["200", "last_enabled_workspace"]);
  });
});
