import { describe, expect, test } from "vitest";
import {
  ALL_GRANTS,
  beyond,
  enoughFor,
  holdsForSome,
  holdsPermission,
  idsHeld,
  type RootKeyPermission,
  rootKeyPermissionProblem,
  storedTuple,
  tupleCovering,
  WORKSPACE_GRANTS,
} from "./root-key.ts";

const createKey: RootKeyPermission = {
  type: "api",
  action: "create_key",
  tuple: "api.*.create_key",
  orFor: "apiId",
};
const createApi: RootKeyPermission = { type: "api", action: "create_api", tuple: "api.*.create_api" };

describe("whether a permission is held", () => {
  const id = "api_1";
  test.each([
    { name: "the tuple for all is enough", held: ["api.*.create_key"], id, holds: true },
    { name: "the tuple for this one is enough", held: ["x.y.z", "api.api_1.create_key"], id, holds: true },
    { name: "the tuple for another is not", held: ["api.api_2.create_key"], id, holds: false },
    { name: "case counts", held: ["api.*.CREATE_KEY", "api.API_1.create_key"], id, holds: false },
    { name: "no pattern is a grant", held: ["*", "api.*", "api.*.*", "api.api_1.*"], id, holds: false },
    { name: "of no one in particular, the tuple for all is", held: ["api.*.create_key"], id: undefined, holds: true },
    {
      name: "of no one in particular, one for some is not",
      held: ["api.api_1.create_key", "api.undefined.create_key"],
      id: undefined,
      holds: false,
    },
  ])("root key permission tuples authorize a call: $name", ({ held, id, holds }) => {
    expect(holdsPermission(createKey, id, new Set(held))).toBe(holds);
  });

  test("permission that cannot apply to a single id requires the wildcard tuple", () => {
    expect(holdsPermission(createApi, "api_1", new Set(["api.api_1.create_api"]))).toBe(false);
    expect(holdsPermission(createApi, "api_1", new Set(["api.*.create_api"]))).toBe(true);
  });
});

test.each([
  { permission: createKey, id: "api_1", words: "api.*.create_key or api.api_1.create_key" },
  { permission: createKey, id: undefined, words: "api.*.create_key" },
  { permission: createApi, id: "api_1", words: "api.*.create_api" },
])("required root key permission is described as $words", ({ permission, id, words }) => {
  expect(enoughFor(permission, id)).toBe(words);
});

test.each([
  { held: ["api.*.verify_key"], holds: true },
  { held: ["x.y.z", "api.api_9.verify_key"], holds: true },
  { held: ["api.*.read_key", "api.api_9.read_key"], holds: false },
  { held: ["api..verify_key", "api.a.b.verify_key", "api.verify_key", "ratelimit.a.verify_key"], holds: false },
])("root key tuple $held grants verify_key for at least one API ($holds)", ({ held, holds }) => {
  const verifyKey: RootKeyPermission = { type: "api", action: "verify_key", tuple: "api.*.verify_key" };
  expect(holdsForSome(verifyKey, new Set(held))).toBe(holds);
});

test.each([
  { held: ["api.a1.read_analytics", "api.*.read_analytics"], ids: "all" },
  { held: ["api.b2.read_analytics", "x.y.z", "api.A1.read_analytics"], ids: ["b2", "A1"] },
  { held: ["api.*.read_key", "api.a1.read_key", "ratelimit.*.read_analytics", "ratelimit.n1.read_analytics"], ids: [] },
  { held: ["*", "api.*", "api.*.*", "api..read_analytics", "api.a.b.read_analytics", "api.read_analytics"], ids: [] },
  { held: [], ids: [] },
])("root key tuple $held grants read_analytics for the APIs $ids", ({ held, ids }) => {
  const readAnalytics: RootKeyPermission = { type: "api", action: "read_analytics", tuple: "api.*.read_analytics" };
  expect(idsHeld(readAnalytics, new Set(held))).toEqual(ids);
});

test("ALL_GRANTS contains the `*` tuple of each action exactly once", () => {
  expect(new Set(ALL_GRANTS).size).toBe(ALL_GRANTS.length);
  for (const grant of ALL_GRANTS)
    expect(grant).toMatch(/^(api|ratelimit|rbac|identity|workspace|installation)\.\*\.[a-z_]+$/);
  expect(ALL_GRANTS).toEqual(
    expect.arrayContaining([
      "api.*.update_api",
      "ratelimit.*.read_namespace",
      "rbac.*.update_role",
      "identity.*.read_identity",
    ]),
  );
});

test("root key tuple is covered by an equal or wildcard tuple", () => {
  const held = new Set(["api.*.read_key", "api.api_1.read_key", "api.api_1.create_key"]);
  expect(tupleCovering("api.api_1.read_key", held)).toBe("api.api_1.read_key");
  expect(tupleCovering("api.api_2.read_key", held)).toBe("api.*.read_key");
  expect(tupleCovering("api.*.read_key", held)).toBe("api.*.read_key");
  expect(tupleCovering("api.api_2.create_key", held)).toBeUndefined();
  expect(tupleCovering("api.*.create_key", held)).toBeUndefined();
});

test("root key check returns the requested tuples that the held ones do not cover", () => {
  const held = new Set(["api.*.read_key", "api.api_1.create_key", "rbac.*.create_role"]);
  const wanted = [
    "api.*.read_key",
    "api.api_2.read_key",
    "api.api_1.create_key",
    "api.api_2.create_key",
    "rbac.*.create_role",
  ];
  expect(beyond(wanted, held)).toEqual(["api.api_2.create_key"]);
  expect(beyond(["api.*.create_key", "identity.*.read_identity"], held)).toEqual([
    "api.*.create_key",
    "identity.*.read_identity",
  ]);
  expect(beyond(WORKSPACE_GRANTS, new Set(ALL_GRANTS))).toEqual([]);
  expect(beyond(ALL_GRANTS, new Set(WORKSPACE_GRANTS))).not.toEqual([]);
});

test.each(["api.*.verify_key", "ratelimit.rlns_1.limit", "rbac.*.create_role"])(
  "%s is a valid root key permission",
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
])("%j is an invalid root key permission", (tuple) =>
  expect(rootKeyPermissionProblem(tuple)).toEqual(expect.any(String)),
);

test.each([
  { given: "apis.*.create_key", stored: "api.*.create_key" },
  { given: "apis.api_1.read_key", stored: "api.api_1.read_key" },
  { given: "api.apis.read_key", stored: "api.apis.read_key" },
  { given: "rbac.*.create_role", stored: "rbac.*.create_role" },
])("root key permission $given is stored as $stored", ({ given, stored }) => expect(storedTuple(given)).toBe(stored));
