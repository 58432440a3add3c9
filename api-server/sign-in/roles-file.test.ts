import { expect, test } from "vitest";
import { followRoles, parseRolesFile } from "./roles-file.ts";

const FILE = `groups:
  platform:
    "*": admin
  payments:
    payments-prod: viewer
    payments-dev: operator
  __proto__x:
    ws_1: viewer
`;

test("roles file combines the roles of all groups of a user", () => {
  const roles = parseRolesFile(FILE);
  expect(roles(["payments", "platform", "unknown"])).toEqual([
    { workspace: "payments-prod", role: "viewer" },
    { workspace: "payments-dev", role: "operator" },
    { workspace: "*", role: "admin" },
  ]);
});

test.each(["unknown", "Payments", "payments ", "__proto__", "constructor", "toString", ""])(
  "roles file grants nothing to group %j",
  (group) => expect(parseRolesFile(FILE)([group])).toEqual([]),
);

test.each([
  ["groups: {a: {b: owner}}", /^line 1, column 17: groups\.a\.b: /],
  ["groups:\n  a:\n    b: admin\n  a:\n    c: viewer\n", /^line 4, column 3: /],
  ["groups:\n  a: {b: admin, 'b': viewer}\n", /^line 2, column 17: Map keys must be unique/],
  ["groups: {}\ngroups: {a: {b: admin}}\n", /^line 2, column 1: /],
  [`groups: {a: {b: viewer}} # ${"x".repeat(1_048_576)}`, /more than 1048576 characters/],
  ["groups:\n  a: [viewer]\n", /^line 2, column 6: groups\.a: /],
  ["groups: {}\nmore: 1\n", /^(line 1, column 1: )?the file: .*more/],
  ["", /groups/],
  ["groups: {a: {'': viewer}}", /groups\.a/],
  ["a: &a [1]\ngroups: {}\nb: *a", /./],
  ["groups: {a: {b: admin}", /^line 1, column \d+: /],
  ["- a", /./],
  ["just text", /./],
])("roles file %j is rejected with its position", (text, message) => {
  expect(() => parseRolesFile(text)).toThrow(message);
});

test("roles file with the maximum number of groups is parsed quickly", () => {
  const text = `groups:\n${Array.from({ length: 25_000 }, (_, i) => `  group-${i}: {shop-${i}: viewer}\n`).join("")}`;
  const startedMs = performance.now();
  expect(parseRolesFile(text)(["group-24999"])).toEqual([{ workspace: "shop-24999", role: "viewer" }]);
  expect(performance.now() - startedMs).toBeLessThan(10_000);
});

test("roles file is parsed again only when its text changes", () => {
  let text = FILE;
  const roles = followRoles(() => text);
  expect(roles(["payments"])).toHaveLength(2);
  text = "groups: {payments: {shop: admin}}";
  expect(roles(["payments"])).toEqual([{ workspace: "shop", role: "admin" }]);
});
