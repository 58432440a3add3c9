import { expect, test } from "vitest";
import { ALL_GRANTS, rootKeyPermissionProblem } from "../../../core/permissions/root-key.ts";
import { actionsOf, differenceOf, inWords, PRESETS, RESOURCES, warningsOf } from "./tuples.ts";

test.each([
  [[], "nothing"],
  [["api.api_1.verify_key"], "verify key on the API api_1"],
  [["api.*.verify_key", "api.*.read_key"], "verify key, read key on all APIs and their keys"],
  [["ratelimit.rlns_1.limit", "rbac.*.read_role"], "limit on the namespace rlns_1; read role on roles and permissions"],
  [["api.*.a", "api.*.b", "api.*.c"], "3 actions on all APIs and their keys"],
  [ALL_GRANTS, "all permissions in all workspaces"],
] as const)("root key permissions %j are described as: %s", (permissions, words) =>
  expect(inWords(permissions)).toBe(words),
);

test("every root key action can be selected, but a global action cannot be selected for a single id", () => {
  const chosen = RESOURCES.flatMap(({ type }) => actionsOf(type, "*").map((action) => `${type}.*.${action}`));
  expect(chosen.toSorted()).toEqual(ALL_GRANTS.toSorted());
  expect(actionsOf("api", "api_1")).not.toContain("create_api");
});

test.each(PRESETS)("root key preset $label contains only valid permissions", ({ tuples }) => {
  expect(tuples("api_1").map(rootKeyPermissionProblem).filter(Boolean)).toEqual([]);
  expect(tuples("api_1").length).toBeGreaterThan(0);
});

test("root key form warns about wildcards and about permissions to create root keys", () => {
  expect(warningsOf(["api.api_1.verify_key", "api.*.create_api"])).toEqual([]);
  expect(warningsOf(["api.*.verify_key"])).toEqual([expect.stringContaining("to all APIs or namespaces")]);
  expect(warningsOf(["workspace.*.create_root_key"])).toEqual([expect.stringContaining("create or change root keys")]);
  expect(warningsOf(["api.api_1.decrypt_key", "installation.*.read_workspace"])).toHaveLength(2);
});

test("difference between root key permissions lists removed and added permissions", () => {
  expect(differenceOf(["b", "a"], ["c", "a"])).toEqual({ goes: ["b"], comes: ["c"] });
});
