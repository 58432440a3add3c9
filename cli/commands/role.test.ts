import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiCli, openApiCli } from "../test/api-cli.ts";

let cli: ApiCli;
beforeAll(async () => {
  cli = await openApiCli();
});
afterAll(() => cli.close());

test("role commands create, show, change and delete a role with permissions", async () => {
  const permissions = ["--permission", "orders.read", "--permission", "orders.write"];
  const { roleId } = await cli.json([
    "role",
    "create",
    "--name",
    "editor",
    "--description",
    "for clerks",
    ...permissions,
  ]);
  const got = await cli.json(["role", "get", "--role", "editor"]);
  expect(got).toEqual({
    roleId,
    name: "editor",
    permissions: ["orders.read", "orders.write"],
    description: "for clerks",
  });
  expect(await cli.json(["role", "update", "--role", "editor", "--permissions", "a.b,orders.read"])).toMatchObject({
    permissions: ["a.b", "orders.read"],
  });
  expect(await cli.json(["role", "update", "--role", "editor", "--permission", "orders.read"])).toMatchObject({
    roleId,
    permissions: ["orders.read"],
  });
  expect((await cli.json(["role", "update", "--role", roleId, "--no-permissions"])).permissions).toEqual([]);
  expect((await cli.json(["role", "get", "--role", roleId])).permissions).toEqual([]);
  expect((await cli.run(["role", "delete", "--role", "editor"])).out).toEqual(["role editor is deleted"]);
  expect((await cli.run(["role", "get", "--role", "editor"])).code).toBe(1);
});

test("role delete deletes a role that keys have, unless --only-if-unused is set", async () => {
  const { name } = await cli.resources.role();
  const { keyId } = await cli.resources.key({ roles: [name] });
  expect((await cli.run(["role", "delete", "--role", name, "--only-if-unused"])).code).toBe(1);
  expect((await cli.t.data("keys.getKey", { keyId })).roles).toEqual([name]);
  expect((await cli.run(["role", "delete", "--role", name])).code).toBe(0);
});

test("role list fits the terminal, can be filtered, and continues at its cursor", async () => {
  const slugs = Array.from({ length: 20 }, (_, n) => `a.permission.number.${n}`);
  for (const name of ["clerk-1", "clerk-2", "driver"])
    await cli.t.data("permissions.createRole", { name, permissions: slugs });
  const { roles } = await cli.json(["role", "list", "--search", "clerk"]);
  expect(roles.map((role: { name: string }) => role.name).sort()).toEqual(["clerk-1", "clerk-2"]);
  const { out } = await cli.run(["role", "list"], { ...cli.as(cli.t.workspace.rootKey), columns: 80 });
  expect(Math.max(...out.map((line) => line.length))).toBeLessThanOrEqual(80);
  const first = await cli.json(["role", "list", "--limit", "1"]);
  const rest = await cli.json(["role", "list", "--all", "--cursor", first.cursor]);
  const all = await cli.json(["role", "list", "--all"]);
  expect([...first.roles, ...rest.roles]).toEqual(all.roles);
});

test("role update requires a valid change, and role commands find no role of another workspace", async () => {
  for (const args of [[], ["--no-permissions", "--permission", "a.b"]]) {
    expect((await cli.run(["role", "update", "--role", "x", ...args])).code).toBe(2);
  }
  const { rootKey } = await cli.t.makeWorkspace();
  const { roleId, name } = await cli.resources.role(["orders.read"]);
  for (const args of [
    ["get", "--role", name],
    ["update", "--role", roleId, "--no-permissions"],
    ["delete", "--role", roleId],
  ]) {
    expect(await cli.run(["role", ...args], cli.as(rootKey))).toMatchObject({ code: 1, text: "" });
  }
  expect((await cli.json(["role", "get", "--role", name])).permissions).toEqual(["orders.read"]);
  const poor = cli.as(await cli.t.rootKey(["rbac.*.read_role"]));
  const refused = await cli.run(["role", "update", "--role", name, "--no-permissions"], poor);
  expect(refused.notes.join()).toContain("postern rootkey create --permissions 'rbac.*.");
});
