import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { QuerySyntaxError } from "../permissions/query.ts";
import { type CompiledRule, compileRules, type RuleMatcher } from "./match-rule.ts";
import type { PathAllowance, PathMatch, PolicyRule } from "./policy.ts";

const aRule = (rule: Partial<PolicyRule> = {}): PolicyRule => ({
  access: "Key",
  creditCost: 1,
  ratelimits: [],
  ...rule,
});
const ruleOf = (matcher: RuleMatcher, method: string, target: string): CompiledRule => {
  const matched = matcher.match(method, target);
  if ("refused" in matched) throw new Error(`${target} is refused because ${matched.refused}`);
  return matched.rule;
};
const indexOf = (rules: PolicyRule[], method: string, path: string): number =>
  ruleOf(compileRules({ rules, allowPaths: [] }), method, path).index;

describe("a rule's path", () => {
  test.each<{ path: PathMatch | undefined; asked: string; matches: boolean }>([
    { path: undefined, asked: "/anything", matches: true },
    { path: { prefix: "/" }, asked: "/", matches: true },
    { path: { prefix: "/" }, asked: "/a/b", matches: true },
    { path: { prefix: "/healthz" }, asked: "/healthz", matches: true },
    { path: { prefix: "/healthz" }, asked: "/healthz/", matches: true },
    { path: { prefix: "/healthz" }, asked: "/healthz/live", matches: true },
    { path: { prefix: "/healthz" }, asked: "/healthz-admin", matches: false },
    { path: { prefix: "/healthz" }, asked: "/healthz;a", matches: false },
    { path: { prefix: "/healthz" }, asked: "/Healthz", matches: false },
    { path: { prefix: "/healthz" }, asked: "/a/healthz", matches: false },
    { path: { prefix: "/orders/" }, asked: "/orders", matches: true },
    { path: { prefix: "/orders/" }, asked: "/orders/7", matches: true },
    { path: { prefix: "/orders/" }, asked: "/orders-old", matches: false },
    { path: { exact: "/orders" }, asked: "/orders", matches: true },
    { path: { exact: "/orders" }, asked: "/orders/", matches: false },
    { path: { exact: "/orders" }, asked: "/orders/7", matches: false },
    { path: { prefix: "/%6frders" }, asked: "/orders/7", matches: true },
    { path: { exact: "/caf\u00e9" }, asked: "/caf%C3%A9", matches: true },
    { path: { exact: "/caf%c3%a9" }, asked: "/caf%C3%A9", matches: true },
    { path: { prefix: "/a/../b" }, asked: "/b", matches: false },
    { path: { prefix: "//" }, asked: "/b", matches: false },
    { path: { prefix: "/a//" }, asked: "/a/b", matches: false },
    { path: { prefix: "/a;b/" }, asked: "/a;b/c", matches: true },
  ])("match of rule path $path with request path $asked is $matches", ({ path, asked, matches }) => {
    expect(indexOf([aRule(path === undefined ? {} : { path })], "GET", asked)).toBe(matches ? 0 : -1);
  });
});

describe("rules", () => {
  const rules = [
    aRule({ methods: ["GET"], path: { prefix: "/healthz" }, access: "Anonymous" }),
    aRule({ methods: ["POST", "PUT"], path: { prefix: "/orders" }, permissions: "orders.write OR orders.admin" }),
    aRule({ path: { prefix: "/orders" }, creditCost: 3 }),
    aRule({ methods: ["DELETE"] }),
  ];

  test.each([
    { method: "GET", path: "/healthz", index: 0 },
    { method: "POST", path: "/healthz", index: -1 },
    { method: "POST", path: "/orders/7", index: 1 },
    { method: "GET", path: "/orders/7", index: 2 },
    { method: "HEAD", path: "/healthz", index: -1 },
    { method: "PURGE", path: "/orders", index: 2 },
    { method: "PURGE", path: "/", index: -1 },
    { method: "get", path: "/healthz", index: -1 },
    { method: "DELETE", path: "/any", index: 3 },
    { method: "DELETE", path: "/orders", index: 2 },
  ])("request $method $path matches rule $index", ({ method, path, index }) =>
    expect(indexOf(rules, method, path)).toBe(index),
  );

  test("request without a matching rule requires a valid key and costs one credit", () => {
    const matched = ruleOf(compileRules({ rules: [], allowPaths: [] }), "GET", "/");
    expect(matched).toEqual({ index: -1, access: "Key", creditCost: 1, ratelimits: [] });
  });

  test("matching rule includes its permission query, which is parsed once", () => {
    const matcher = compileRules({ rules, allowPaths: [] });
    const matched = ruleOf(matcher, "POST", "/orders");
    expect(matched.query).toMatchObject({ op: "or" });
    expect(ruleOf(matcher, "PUT", "/orders")).toBe(matched);
  });

  const limit = {
    scope: { kind: "name", name: "writes" },
    identifier: "key",
    limit: 10,
    durationMs: 1000,
    cost: 1,
    accuracy: "strict",
  } as const;
  test.each<{ name: string; rules: PolicyRule[]; decides: boolean }>([
    { name: "no rule at all", rules: [], decides: false },
    { name: "one rule that asks for no more than a key", rules: [aRule({ path: { prefix: "/a" } })], decides: false },
    {
      name: "an open path",
      rules: [aRule({ path: { prefix: "/healthz" }, access: "Anonymous" })],
      decides: true,
    },
    {
      name: "a path with a permission",
      rules: [aRule({ path: { prefix: "/admin" }, permissions: "a" })],
      decides: true,
    },
    {
      name: "a path that costs more credits",
      rules: [aRule({ path: { exact: "/admin" }, creditCost: 2 })],
      decides: true,
    },
    { name: "a path with a limit", rules: [aRule({ path: { prefix: "/admin" }, ratelimits: [limit] })], decides: true },
    {
      name: "two paths with the same permission",
      rules: [
        aRule({ path: { prefix: "/a" }, permissions: "a" }),
        aRule({ path: { prefix: "/b" }, permissions: "a" }),
        aRule({ permissions: "a" }),
      ],
      decides: false,
    },
    { name: "a permission for every path", rules: [aRule({ permissions: "a" })], decides: false },
    { name: "every path open", rules: [aRule({ path: { prefix: "/" }, access: "Anonymous" })], decides: false },
    {
      name: "a stricter rule that is never reached",
      rules: [aRule({ permissions: "a" }), aRule({ path: { prefix: "/admin" }, permissions: "b" })],
      decides: false,
    },
    {
      name: "permissions by method alone",
      rules: [aRule({ methods: ["GET"], permissions: "a" }), aRule({ permissions: "b" })],
      decides: false,
    },
    {
      name: "permissions of a path before a rule for all",
      rules: [aRule({ path: { prefix: "/admin" }, permissions: "a" }), aRule({ access: "Anonymous" })],
      decides: true,
    },
    {
      name: "permissions of a path after a rule for all, which is never reached",
      rules: [aRule({ access: "Anonymous" }), aRule({ path: { prefix: "/admin" }, permissions: "a" })],
      decides: false,
    },
    {
      name: "a path of one method",
      rules: [aRule({ methods: ["DELETE"], path: { prefix: "/admin" }, permissions: "a" })],
      decides: true,
    },
  ])("check whether requirements differ by path returns $decides: $name", ({ rules: some, decides }) => {
    expect(compileRules({ rules: some, allowPaths: [] }).pathDecides).toBe(decides);
  });

  test("invalid permission query of a rule is reported at policy compilation", () => {
    expect(() => compileRules({ rules: [aRule({ permissions: "a AND" })], allowPaths: [] })).toThrow(QuerySyntaxError);
  });

  test("first rule that matches path segments and method applies to any request", () => {
    const segment = fc.constantFrom("a", "ab", "b");
    const path = fc.array(segment, { maxLength: 3 }).map((segments) => `/${segments.join("/")}`);
    const methods = fc.option(fc.subarray(["GET", "POST", "DELETE"] as const, { minLength: 1 }), { nil: undefined });
    const pathMatch = fc.oneof(
      fc.constant(undefined),
      path.map((prefix) => ({ prefix })),
      path.map((exact) => ({ exact })),
    );
    const rule = fc
      .record({ methods, path: pathMatch })
      .map(({ methods, path }) =>
        aRule({ ...(methods === undefined ? {} : { methods }), ...(path === undefined ? {} : { path }) }),
      );
    const isFor = (candidate: PolicyRule, method: string, asked: string): boolean => {
      if (candidate.methods !== undefined && !candidate.methods.some((one) => one === method)) return false;
      if (candidate.path === undefined) return true;
      if ("exact" in candidate.path) return candidate.path.exact === asked;
      const wanted = candidate.path.prefix.split("/").filter((one) => one !== "");
      const had = asked.split("/").filter((one) => one !== "");
      return wanted.every((one, i) => had[i] === one);
    };
    fc.assert(
      fc.property(
        fc.array(rule, { maxLength: 6 }),
        fc.constantFrom("GET", "POST", "PATCH"),
        path,
        (some, method, asked) => {
          expect(indexOf(some, method, asked)).toBe(some.findIndex((candidate) => isFor(candidate, method, asked)));
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("a path that an app may read as that of another rule", () => {
  const guarded = aRule({ path: { prefix: "/Admin/users" }, permissions: "admin" });
  const exact = aRule({ path: { exact: "/users/@me" }, permissions: "me" });
  const open = aRule({ access: "Anonymous" });
  const match = (target: string, { rules = [guarded, exact, open], allowPaths = [] as PathAllowance[] } = {}) =>
    compileRules({ rules, allowPaths }).match("GET", target);

  test.each([
    "/admin/users",
    "/ADMIN/USERS/7",
    "/Admin/users.",
    "/Admin/users%20",
    "/Admin%C2%A0/users",
    "/Admin./users/7",
    "/%EF%BC%A1dmin/users",
    "/Admin/user%C5%BF",
    "/Admin%252Fusers",
    "/Admin/%2575sers",
    "/Admin/users%3Fx",
    "/Admin/users%23x",
    "/Admin/us%E2%80%8Bers",
    "/public/%252e%252e/Admin/users",
    "/users/@me/",
    "/users/%40ME",
    "/users/@me.",
  ])("near-match path %s is rejected", (target) =>
    expect(match(target)).toEqual({ refused: expect.stringContaining("another rule") }),
  );

  test.each([
    { target: "/Admin/users", index: 0 },
    { target: "/Admin/users/", index: 0 },
    { target: "/Admin/users/J%C3%96RG", index: 0 },
    { target: "/users/%40me", index: 1 },
    { target: "/Admin", index: 2 },
    { target: "/ADMIN/userS-old", index: 2 },
    { target: "/users/@ME/settings", index: 2 },
    { target: "/Public/A%20B/", index: 2 },
  ])("request target $target matches rule $index despite similar rule paths", ({ target, index }) =>
    expect(match(target)).toMatchObject({ rule: { index } }),
  );

  test("near-match path passes when the other rule has the same requirements", () => {
    const rules = [guarded, aRule({ path: { prefix: "/admin" }, permissions: "admin" }), open];
    expect(match("/admin/users", { rules })).toMatchObject({ rule: { index: 1 } });
    expect(match("/ADMIN", { rules })).toHaveProperty("refused");
  });

  test("with allowPaths NearMatch, a rule matches only its exact spelling", () => {
    const rules = [guarded, aRule({ path: { prefix: "/admin/users" } }), open];
    expect(match("/admin/users", { rules, allowPaths: ["NearMatch"] })).toMatchObject({ rule: { index: 1 } });
    expect(match("/Admin/users", { rules, allowPaths: ["NearMatch"] })).toMatchObject({ rule: { index: 0 } });
    expect(match("/ADMIN/users", { rules, allowPaths: ["NearMatch"] })).toMatchObject({ rule: { index: 2 } });
  });

  test("near-match path uses its own rule when the similar rule allows anonymous access", () => {
    const rules = [aRule({ path: { prefix: "/Healthz" }, access: "Anonymous" }), guarded];
    for (const target of ["/healthz", "/Healthz.html", "/HEALTHZ/"])
      expect(match(target, { rules }), target).toMatchObject({ rule: { index: -1 } });
  });

  test.each([
    "/Admin/users.json",
    "/admin/users.xml",
    "/users/@me.json",
    "/users/%40me.%6Ason",
    "/users/@me.json/",
    "/Admin/users%252ejson",
    "/Admin/users..json",
    "/Admin/users.json%20",
  ])("path %s with a format suffix is rejected", (target) =>
    expect(match(target)).toEqual({ refused: expect.stringContaining("suffix") }),
  );

  test("path with a format suffix is accepted by an exact rule, a prefix rule or allowPaths Suffix", () => {
    const asset = aRule({ path: { exact: "/users/@me.css" }, access: "Anonymous" });
    expect(match("/users/@me.css", { rules: [guarded, exact, asset, open] })).toMatchObject({ rule: { index: 2 } });
    expect(match("/Admin/users/7.json")).toMatchObject({ rule: { index: 0 } });
    const versioned = [aRule({ path: { prefix: "/users/@me.v2" }, permissions: "v2" }), guarded, exact, open];
    expect(match("/users/@me.v2", { rules: versioned })).toMatchObject({ rule: { index: 0 } });
    expect(match("/users/@me.v2.json", { rules: versioned })).toHaveProperty("refused");
    expect(match("/users/.well-known")).toMatchObject({ rule: { index: 2 } });
    expect(match("/users/@me.json", { allowPaths: ["Suffix"] })).toMatchObject({ rule: { index: 2 } });
    expect(match("/users/@me.json", { allowPaths: ["NearMatch"] })).toHaveProperty("refused");
    expect(match("/users/@ME.json", { allowPaths: ["NearMatch"] })).toMatchObject({ rule: { index: 2 } });
  });

  test("near-match check considers only rules for the method of the request", () => {
    const rules = [aRule({ methods: ["DELETE"], path: { prefix: "/admin" }, permissions: "admin" }), open];
    expect(compileRules({ rules, allowPaths: [] }).match("DELETE", "/ADMIN")).toHaveProperty("refused");
    expect(compileRules({ rules, allowPaths: [] }).match("GET", "/ADMIN")).toMatchObject({ rule: { index: 1 } });
  });

  test("near-match check takes time linear in the length of the path", () => {
    for (const unit of [".", "/.", "%20", "/..", "%25", "A;", "%E2%80%8B", "/a"]) {
      const startedMs = performance.now();
      match(`/Admin${unit.repeat(Math.floor(262_144 / unit.length))}`, {
        allowPaths: ["DotSegments", "Semicolon", "ControlCharacters", "DoubleSlash"],
      });
      // 256 KiB take 100 ms; quadratic time would take minutes.
      expect(performance.now() - startedMs, unit).toBeLessThan(3_000);
    }
  });
});

test.each(["!", "$", "&", "'", "(", ")", "+", ",", "=", ":", "@", "[", "]", "^", "|", '"', "`", "<", ">", "ü"])(
  "rule path with %s matches its encoded and unencoded form",
  (character) => {
    const rules = [aRule({ path: { exact: `/a${character}b` }, permissions: "a" }), aRule({ access: "Anonymous" })];
    const upper = encodeURIComponent(character).replace(
      /^[!'()]$/,
      (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
    );
    const raw = Buffer.from(character).toString("latin1");
    for (const spelling of [raw, upper, upper.toLowerCase()]) {
      expect(indexOf(rules, "GET", `/a${spelling}b`), spelling).toBe(0);
    }
  },
);
