import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

describe("getWorkspace", () => {
  test("says whose root key it is, also to one that may do nothing else", async () => {
    const other = await api.makeWorkspace();
    const nothing = await api.rootKey([]);
    const get = (rootKey?: string) =>
      api.data("workspaces.getWorkspace", {}, rootKey === undefined ? undefined : { rootKey });
    expect(await get()).toEqual({ id: api.workspace.id, name: api.workspace.id });
    expect(await get(nothing)).toEqual({ id: api.workspace.id, name: api.workspace.id });
    expect(await get(other.rootKey)).toEqual({ id: other.id, name: other.id });
  });

  test("takes no name of a workspace", async () => {
    expect((await api.call("workspaces.getWorkspace", { id: "ws_other" })).status).toBe(400);
  });
});
