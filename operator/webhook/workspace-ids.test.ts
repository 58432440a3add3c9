import { expect, test } from "vitest";
import type { ApiClient } from "../api/client.ts";
import type { Place, Workspace } from "../tenancy/workspaces.ts";
import { createWorkspaceIds } from "./workspace-ids.ts";

/** Returns a workspace whose API sends these responses in order; a number is the status of a failure. */
function aWorkspace(name: string, ...responses: (string | Error)[]): { workspace: Workspace; asked: () => number } {
  let asked = 0;
  const call = async () => {
    const response = responses[Math.min(asked++, responses.length - 1)];
    if (response instanceof Error) throw response;
    return { data: { id: response, name } };
  };
  return { workspace: { name, isDefault: false, api: { call } as unknown as ApiClient }, asked: () => asked };
}

function open(places: Record<string, Place>) {
  const confirmed: string[] = [];
  const warnings: unknown[] = [];
  const ids = createWorkspaceIds(
    {
      resolve: (namespace) => places[namespace] ?? { reason: "none", message: `${namespace} has no workspace.` },
      confirm: async (namespace) => void confirmed.push(namespace),
    },
    { warn: (about: unknown) => void warnings.push(about) } as never,
  );
  return { ids, confirmed, warnings };
}

test("workspace id is requested once for concurrent pods of several namespaces", async () => {
  const { workspace, asked } = aWorkspace("team", "ws_1");
  const { ids, confirmed } = open({ a: { workspace }, b: { workspace } });
  ids.prepare("a");
  const responses = await Promise.all([ids.of("a"), ids.of("b"), ids.of("a")]);
  expect(responses).toEqual([{ workspaceId: "ws_1" }, { workspaceId: "ws_1" }, { workspaceId: "ws_1" }]);
  expect(asked()).toBe(1);
  expect(confirmed).toEqual(["a", "b", "a"]);
});

test("workspace id lookup rejects pods while api-servers are unavailable, then retries", async () => {
  const { workspace } = aWorkspace("team", new Error("away"), new Error("away"), "ws_1");
  const { ids, warnings } = open({ a: { workspace } });
  ids.prepare("a");
  expect(await ids.of("a")).toMatchObject({ refused: expect.stringContaining("no api-server") });
  expect(await ids.of("a")).toMatchObject({ refused: expect.stringContaining("no api-server") });
  expect(await ids.of("a")).toEqual({ workspaceId: "ws_1" });
  expect(warnings).toHaveLength(2);
});

test("workspace id is requested again after its root key changes", async () => {
  const places: Record<string, Place> = { a: { workspace: aWorkspace("team", "ws_1").workspace } };
  const { ids } = open(places);
  expect(await ids.of("a")).toEqual({ workspaceId: "ws_1" });
  places.a = { workspace: aWorkspace("team", "ws_2").workspace };
  expect(await ids.of("a")).toEqual({ workspaceId: "ws_2" });
});

test("namespace without a workspace is rejected with a reason", async () => {
  const { ids } = open({});
  expect(await ids.of("b")).toEqual({ refused: "b has no workspace." });
  expect(() => ids.prepare("b")).not.toThrow();
});
