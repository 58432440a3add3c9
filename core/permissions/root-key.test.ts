import { describe, expect, test } from "vitest";
import {
  ALL_GRANTS,
  allOf,
  anyOf,
  apiPermission,
  holdsForSome,
  identityPermission,
  missingPermission,
  ratelimitPermission,
  rbacPermission,
  rootKeyPermissionProblem,
} from "./root-key.ts";

describe("what is missing of a requirement", () => {
  const createKey = apiPermission("create_key", "api_1");
  test.each([
    { name: "nothing, with the tuple for all", requirement: createKey, held: ["api.*.create_key"], missing: undefined },
    {
      name: "nothing, with the tuple for this one",
      requirement: createKey,
      held: ["api.api_1.create_key"],
      missing: undefined,
    },
    {
      name: "both alternatives, with the tuple for another",
      requirement: createKey,
      held: ["api.api_2.create_key"],
      missing: "api.*.create_key or api.api_1.create_key",
    },
    {
      name: "case counts",
      requirement: createKey,
      held: ["api.*.CREATE_KEY"],
      missing: "api.*.create_key or api.api_1.create_key",
    },
    {
      name: "no pattern is a grant",
      requirement: createKey,
      held: ["*", "api.*", "api.*.*", "api.api_1.*"],
      missing: "api.*.create_key or api.api_1.create_key",
    },
    {
      name: "one alternative is named alone",
      requirement: apiPermission("create_api"),
      held: [],
      missing: "api.*.create_api",
    },
    {
      name: "of several, the first that fails",
      requirement: allOf(rbacPermission("create_role"), rbacPermission("add_permission_to_role"), "x.y.z"),
      held: ["rbac.*.create_role"],
      missing: "rbac.*.add_permission_to_role",
    },
    {
      name: "what is held is not named in an alternative of several",
      requirement: anyOf("ratelimit.*.limit", allOf("ratelimit.a.limit", "ratelimit.b.limit")),
      held: ["ratelimit.a.limit"],
      missing: "ratelimit.*.limit or ratelimit.b.limit",
    },
    {
      name: "all of an alternative satisfy",
      requirement: anyOf("ratelimit.*.limit", allOf("ratelimit.a.limit", "ratelimit.b.limit")),
      held: ["ratelimit.a.limit", "ratelimit.b.limit"],
      missing: undefined,
    },
    { name: "nothing is asked for", requirement: allOf(), held: [], missing: undefined },
    {
      name: "identities by id",
      requirement: identityPermission("read_identity", "id_1"),
      held: ["identity.id_1.read_identity"],
      missing: undefined,
    },
    {
      name: "namespaces by id",
      requirement: ratelimitPermission("limit", "rlns_1"),
      held: ["ratelimit.rlns_1.limit"],
      missing: undefined,
    },
  ])("$name", ({ requirement, held, missing }) => {
    expect(missingPermission(requirement, new Set(held))).toBe(missing);
  });
});

test.each([
  { held: ["api.*.verify_key"], holds: true },
  { held: ["x.y.z", "api.api_9.verify_key"], holds: true },
  { held: ["api.*.read_key", "api.api_9.read_key"], holds: false },
  { held: ["api..verify_key", "api.a.b.verify_key", "api.verify_key", "ratelimit.a.verify_key"], holds: false },
])("$held holds verify_key for some API: $holds", ({ held, holds }) => {
  expect(holdsForSome({ type: "api", action: "verify_key" }, new Set(held))).toBe(holds);
});

test("ALL_GRANTS holds the `*` tuple of each action once", () => {
  expect(new Set(ALL_GRANTS).size).toBe(ALL_GRANTS.length);
  for (const grant of ALL_GRANTS) expect(grant).toMatch(/^(api|ratelimit|rbac|identity)\.\*\.[a-z_]+$/);
  expect(ALL_GRANTS).toEqual(
    expect.arrayContaining([
      "api.*.update_api",
      "ratelimit.*.read_namespace",
      "rbac.*.update_role",
      "identity.*.read_identity",
    ]),
  );
});

test.each(["api.*.verify_key", "ratelimit.rlns_1.limit", "rbac.*.create_role"])(
  "%s is a tuple for a root key",
  (tuple) => {
    expect(rootKeyPermissionProblem(tuple)).toBeUndefined();
  },
);

test.each([
  "",
  "api",
  "api.*",
  "api.*.*",
  "api.*.fly",
  "toString.*.limit",
  "api..verify_key",
  "api.a b.verify_key",
  "api.a.b.verify_key",
  "api.*.verify_key.",
  "api.*.verify_key.x",
])("%j is no tuple for a root key", (tuple) => expect(rootKeyPermissionProblem(tuple)).toEqual(expect.any(String)));
