import { expect, test } from "vitest";
import { GRANTS_OF_INSTALLATION_ADMIN, grantsOfPerson } from "../permissions/person-roles.ts";
import { type Assignment, grantsIn, namedWorkspaces, roleIn } from "./assignments.ts";

const shop = { id: "ws_1", name: "shop" };
const at = (workspace: string, role: Assignment["role"]): Assignment => ({ workspace, role });

test.each<{ name: string; of: Assignment[]; role: Assignment["role"] | undefined }>([
  { name: "none", of: [], role: undefined },
  { name: "by id", of: [at("ws_1", "viewer")], role: "viewer" },
  { name: "by name", of: [at("shop", "operator")], role: "operator" },
  { name: "by the star", of: [at("*", "viewer")], role: "viewer" },
  { name: "elsewhere alone", of: [at("ws_2", "admin"), at("bank", "admin")], role: undefined },
  { name: "the highest, whichever comes first", of: [at("shop", "admin"), at("*", "viewer")], role: "admin" },
  { name: "the highest, whichever comes last", of: [at("*", "viewer"), at("ws_1", "operator")], role: "operator" },
  { name: "a name that begins alike", of: [at("shop2", "admin"), at("sho", "admin")], role: undefined },
  { name: "a star within a name", of: [at("sh*", "admin"), at("**", "admin")], role: undefined },
])("the role in a workspace: $name", ({ of, role }) => {
  expect(roleIn(of, shop)).toBe(role);
  expect(grantsIn(of, shop)).toEqual(role === undefined ? undefined : grantsOfPerson(role));
});

test("a workspace that is called like the id of another one is not entered by that one's people", () => {
  const disguised = { id: "ws_2", name: "ws_1" };
  expect(roleIn([at("ws_1", "admin")], disguised)).toBeUndefined();
  expect(roleIn([at("ws_2", "viewer"), at("ws_1", "admin")], disguised)).toBe("viewer");
});

test("an admin of all workspaces administers the installation, whatever else the person is", () => {
  expect(grantsIn([at("shop", "viewer"), at("*", "admin")], shop)).toBe(GRANTS_OF_INSTALLATION_ADMIN);
});

test("an operator of all workspaces who is admin of this one does not", () => {
  expect(grantsIn([at("shop", "admin"), at("*", "operator")], shop)).toEqual(grantsOfPerson("admin"));
});

test("the workspaces that a person may enter are named once, or all", () => {
  expect(namedWorkspaces([at("shop", "viewer"), at("ws_2", "admin"), at("shop", "admin")])).toEqual(["shop", "ws_2"]);
  expect(namedWorkspaces([at("shop", "viewer"), at("*", "viewer")])).toBe("all");
  expect(namedWorkspaces([])).toEqual([]);
});
