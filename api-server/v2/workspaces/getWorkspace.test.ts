import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

describe("getWorkspace", () => {
  test("getWorkspace returns the workspace of any valid root key", async () => {
    const other = await api.makeWorkspace();
    const nothing = await api.rootKey([]);
    const get = (rootKey?: string) =>
      api.data("workspaces.getWorkspace", {}, rootKey === undefined ? undefined : { rootKey });
    expect(await get()).toEqual({ id: api.workspace.id, name: api.workspace.id });
    expect(await get(nothing)).toEqual({ id: api.workspace.id, name: api.workspace.id });
    expect(await get(other.rootKey)).toEqual({ id: other.id, name: other.id });
  });

  test("getWorkspace rejects a workspace name", async () => {
    expect((await api.call("workspaces.getWorkspace", { id: "ws_other" })).status).toBe(400);
  });
});
