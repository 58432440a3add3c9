import { expect, test } from "vitest";
import { GROUP, KINDS } from "./index.ts";
import { editCommand, MANAGER, parseManager, resourceOf } from "./manager.ts";

test("manager name consists of cluster, kind, namespace and name", () => {
  const manager = "prod-1/Role/shop/editor.v2";
  expect(parseManager(manager)).toEqual({ cluster: "prod-1", kind: "Role", namespace: "shop", name: "editor.v2" });
  expect(MANAGER.test(manager)).toBe(true);
});

test.each([
  "",
  "a/b/c",
  "a/b/c/d/e",
  "a//c/d",
  "a/Role/shop/x y",
  "a/Role/shop/x;rm",
  `a/Role/shop/${"x".repeat(254)}`,
])("manager name parser rejects %j", (text) => expect(parseManager(text)).toBeUndefined());

test("kubectl finds every manifest kind by its singular name and API group", () => {
  for (const { kind, singular } of KINDS) expect(resourceOf(kind)).toBe(`${singular}.${GROUP}`);
});

test("kubectl command for a manager names the API group because RBAC has Role", () => {
  const name = { cluster: "main", kind: "Role", namespace: "shop", name: "editor" };
  expect(editCommand(name)).toBe("kubectl edit -n shop role.postern.dev/editor");
});

test("manager with an invalid Kubernetes name has no kubectl command", () => {
  for (const manager of ["main/Role/--all/x", "main/Role/shop/-x", "main/-n/shop/x", "main/Role/Shop/x"]) {
    expect(editCommand(parseManager(manager) ?? expect.fail(manager))).toBeUndefined();
  }
});

test.each([
  ["main/Role/shop/editor", true],
  [`${"a".repeat(253)}/b/c/d`, true],
  [`${"a".repeat(254)}/b/c/d`, false],
  ["main/Role/shop", false],
  ["main/Role/shop/editor/more", false],
  ["main//shop/editor", false],
  ["main/Role/shop/ed itor", false],
])("validity of the manager name %s is %s", (name, isOne) => expect(MANAGER.test(name)).toBe(isOne));
