import { expect, test } from "vitest";
import { buildKeyView } from "./key-view.ts";

test("a view holds direct and inherited permissions once each, sorted, and answers for them", () => {
  const view = buildKeyView({
    key: {
      keyId: "key_1",
      workspaceId: "ws_1",
      apiId: "api_1",
      keySpaceId: "ks_1",
      enabled: true,
      roleIds: ["role_1", "role_2"],
      permissions: ["z", "a"],
      ratelimits: [],
      limited: false,
    },
    workspace: { id: "ws_1", enabled: true },
    api: { id: "api_1", name: "orders" },
    identity: undefined,
    roles: [
      { id: "role_2", name: "writer", permissions: ["a", "b.*"] },
      { id: "role_1", name: "reader", permissions: ["c"] },
    ],
  });
  expect(view.permissions).toEqual(["a", "b.*", "c", "z"]);
  expect(view.roles).toEqual(["reader", "writer"]);
  expect(view.grants.satisfies("b.x")).toBe(true);
  expect(view.grants.satisfies("writer")).toBe(false);
});
