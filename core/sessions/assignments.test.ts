import { expect, test } from "vitest";
import { GRANTS_OF_INSTALLATION_ADMIN, grantsOfPerson } from "../permissions/person-roles.ts";
import { type Assignment, administersAll, grantsIn, namedWorkspaces, roleIn } from "./assignments.ts";

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
])("dashboard role in a workspace is the expected one: $name", ({ of, role }) => {
  expect(roleIn(of, shop)).toBe(role);
  expect(grantsIn(of, shop)).toEqual(role === undefined ? undefined : grantsOfPerson(role));
});

test("workspace named like another workspace's id does not admit that workspace's users", () => {
  const disguised = { id: "ws_2", name: "ws_1" };
  expect(roleIn([at("ws_1", "admin")], disguised)).toBeUndefined();
  expect(roleIn([at("ws_2", "viewer"), at("ws_1", "admin")], disguised)).toBe("viewer");
});

test("admin of all workspaces is always an installation administrator", () => {
  expect(grantsIn([at("shop", "viewer"), at("*", "admin")], shop)).toBe(GRANTS_OF_INSTALLATION_ADMIN);
});

test("operator of all workspaces who is an admin of one workspace is not an installation administrator", () => {
  expect(grantsIn([at("shop", "admin"), at("*", "operator")], shop)).toEqual(grantsOfPerson("admin"));
});

test("accessible workspaces of a user are a list without duplicates, or all workspaces", () => {
  expect(namedWorkspaces([at("shop", "viewer"), at("ws_2", "admin"), at("shop", "admin")])).toEqual(["shop", "ws_2"]);
  expect(namedWorkspaces([at("shop", "viewer"), at("*", "viewer")])).toBe("all");
  expect(namedWorkspaces([])).toEqual([]);
});

const bank = { id: "ws_2", name: "bank" };
test.each<{ name: string; by: Assignment[]; of: Assignment[]; is: boolean }>([
  { name: "of one workspace", by: [at("ws_1", "admin")], of: [at("shop", "viewer")], is: true },
  { name: "who is only an operator", by: [at("ws_1", "operator")], of: [at("shop", "viewer")], is: false },
  {
    name: "of one of two workspaces",
    by: [at("ws_1", "admin")],
    of: [at("shop", "viewer"), at("bank", "viewer")],
    is: false,
  },
  {
    name: "of both workspaces",
    by: [at("shop", "admin"), at("ws_2", "admin")],
    of: [at("ws_1", "admin"), at("bank", "viewer")],
    is: true,
  },
  {
    name: "of both, beside a role everywhere",
    by: [at("shop", "admin"), at("bank", "admin")],
    of: [at("*", "viewer")],
    is: false,
  },
  { name: "of all workspaces", by: [at("*", "admin")], of: [at("*", "admin")], is: true },
  { name: "of all workspaces, as an operator", by: [at("*", "operator")], of: [at("shop", "viewer")], is: false },
  {
    name: "beside a workspace that does not exist",
    by: [at("shop", "admin")],
    of: [at("shop", "viewer"), at("gone", "admin")],
    is: true,
  },
])("admin $name has authority over a user: $is", ({ by, of, is }) => {
  expect(administersAll(by, of, [shop, bank])).toBe(is);
});
