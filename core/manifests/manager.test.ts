import { expect, test } from "vitest";
import { GROUP, KINDS } from "./index.ts";
import { editCommand, MANAGER, parseManager, resourceOf } from "./manager.ts";

test("a manager's name has a cluster, a kind, a namespace and a name", () => {
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
])("%j is none", (text) => expect(parseManager(text)).toBeUndefined());

test("kubectl finds every kind by its singular name and our group", () => {
  for (const { kind, singular } of KINDS) expect(resourceOf(kind)).toBe(`${singular}.${GROUP}`);
});

test("the command names the group, because RBAC has a Role too", () => {
  const name = { cluster: "main", kind: "Role", namespace: "shop", name: "editor" };
  expect(editCommand(name)).toBe("kubectl edit -n shop role.postern.dev/editor");
});

test("there is no command for what no object in Kubernetes is called", () => {
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
])("%s: a manager's name is %s", (name, isOne) => expect(MANAGER.test(name)).toBe(isOne));
