import { expect, test } from "vitest";
import { managerOfPolicy } from "../manifests/manager.ts";
import { parseNamedPolicy, policyIdOf } from "./policy-id.ts";

const manager = managerOfPolicy({ cluster: "main", namespace: "shop", name: "orders" });

test("policy id is stable because other versions and databases store it", () => {
  expect(manager).toBe("main/ApiKeyPolicy/shop/orders");
  expect(policyIdOf({ workspaceId: "ws_1", manager })).toBe("pol_97c8c5e543646f540a15c75fd9113e61");
});

test("policy id changes with workspace, cluster, namespace and name", () => {
  const ids = [
    policyIdOf({ workspaceId: "ws_1", manager }),
    policyIdOf({ workspaceId: "ws_2", manager }),
    ...[
      { cluster: "other", namespace: "shop", name: "orders" },
      { cluster: "main", namespace: "orders", name: "shop" },
      { cluster: "main", namespace: "shop", name: "Orders" },
    ].map((named) => policyIdOf({ workspaceId: "ws_1", manager: managerOfPolicy(named) })),
  ];
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^pol_[0-9a-f]{32}$/);
});

test.each([
  ["main/shop/orders", { cluster: "main", namespace: "shop", name: "orders" }],
  ["eu-1.example/shop/a_b.c", { cluster: "eu-1.example", namespace: "shop", name: "a_b.c" }],
  ["pol_8wXy1Za3Bc5De7Fg", undefined],
  ["shop/orders", undefined],
  ["main/ApiKeyPolicy/shop/orders", undefined],
  ["main//orders", undefined],
  ["main/shop/ord ers", undefined],
  [`main/shop/${"n".repeat(254)}`, undefined],
  ["main/shop/orders\n", undefined],
])("policy name %j is parsed as %j", (text, named) => expect(parseNamedPolicy(text)).toEqual(named));
