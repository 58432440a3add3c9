import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { slowMatch } from "../../test/builders/slow-matcher.ts";
import { QuerySyntaxError } from "../permissions/query.ts";
import { hostNameOf } from "./match-host.ts";
import { type CompiledRule, compileRules, type RuleMatcher } from "./match-rule.ts";
import type { PathAllowance, PathMatch, PolicyRule } from "./policy.ts";
import { TemplateError } from "./rule-path.ts";

const aRule = (rule: Partial<PolicyRule> = {}): PolicyRule => ({
  access: "Key",
  creditCost: 1,
  ratelimits: [],
  ...rule,
});
const withoutUndefined = (value: object): Partial<PolicyRule> =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
const ruleOf = (matcher: RuleMatcher, method: string, target: string): CompiledRule => {
  const matched = matcher.match({ method, target, host: "", headers: [] });
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
    { path: { template: "/orders/{order}/refund" }, asked: "/orders/7/refund", matches: true },
    { path: { template: "/orders/{order}/refund" }, asked: "/orders/%37/refund", matches: true },
    { path: { template: "/orders/{order}/refund" }, asked: "/orders/7/8/refund", matches: false },
    { path: { template: "/orders/{order}" }, asked: "/orders", matches: false },
    { path: { template: "/orders/{order}" }, asked: "/orders/", matches: false },
    { path: { template: "/{a}/{b}" }, asked: "/x/y", matches: true },
    { path: { template: "/files/{path...}" }, asked: "/files/", matches: true },
    { path: { template: "/files/{path...}" }, asked: "/files/a/b", matches: true },
    { path: { template: "/files/{path...}" }, asked: "/files", matches: false },
    { path: { template: "/caf\u00e9/{a}" }, asked: "/caf%C3%A9/1", matches: true },
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
    expect(matched).toMatchObject({ index: -1, access: "Key", creditCost: 1, ratelimits: [] });
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

  test("for any policy and request, the rule that applies is the first one that matches by the plain definition", () => {
    const segment = fc.constantFrom("a", "ab", "b");
    const path = fc.array(segment, { maxLength: 3 }).map((segments) => `/${segments.join("/")}`);
    const template = fc
      .tuple(fc.array(fc.constantFrom("a", "b", "{x}", "{y}"), { minLength: 1, maxLength: 3 }), fc.boolean())
      .map(([segments, hasRest]) => `/${[...segments, ...(hasRest ? ["{rest...}"] : [])].join("/")}`);
    const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
    const host = fc.constantFrom("a.test", "b.a.test", "c.b.a.test", "test", "xa.test");
    const rule = fc.record({
      methods: optional(fc.subarray(["GET", "POST", "DELETE"] as const, { minLength: 1 })),
      path: optional(
        fc.oneof(
          path.map((prefix) => ({ prefix })),
          path.map((exact) => ({ exact })),
          template.map((template) => ({ template })),
        ),
      ),
      hosts: optional(
        fc.array(
          fc.oneof(
            host,
            host.map((name) => `*.${name}`),
          ),
          { minLength: 1, maxLength: 2 },
        ),
      ),
      headers: optional(
        fc.array(fc.oneof(fc.constantFrom({ name: "X-A" }, { name: "x-b" }, { name: "X-A", exact: "1" })), {
          minLength: 1,
          maxLength: 2,
        }),
      ),
    });
    const headers = fc.dictionary(fc.constantFrom("x-a", "x-b", "x-c"), fc.constantFrom("1", "2"), { maxKeys: 3 });
    const request = fc.record({ method: fc.constantFrom("GET", "POST", "PATCH"), path, host, headers });
    // More than 32 rules need several words of a set.
    const some = fc.oneof(fc.array(rule, { maxLength: 6 }), fc.array(rule, { minLength: 30, maxLength: 70 }));
    const isBeyondFirstWord = new Set<boolean>();
    fc.assert(
      fc.property(some, request, (changes, asked) => {
        const rules = changes.map((change) => aRule(withoutUndefined(change)));
        // The near-match check compares other spellings of the path, which the plain definition does not.
        const matcher = compileRules({ rules, allowPaths: ["NearMatch", "Suffix"] });
        const found = matcher.match({
          ...asked,
          target: asked.path,
          headers: matcher.headerNames.map((name) => asked.headers[name]),
        });
        const expected = slowMatch(rules, asked);
        isBeyondFirstWord.add(expected >= 32);
        expect(found).toMatchObject({ rule: { index: expected } });
      }),
      { numRuns: 1500 },
    );
    expect([...isBeyondFirstWord].sort()).toEqual([false, true]);
  });
});

describe("a path that an app may read as that of another rule", () => {
  const guarded = aRule({ path: { prefix: "/Admin/users" }, permissions: "admin" });
  const exact = aRule({ path: { exact: "/users/@me" }, permissions: "me" });
  const open = aRule({ access: "Anonymous" });
  const match = (target: string, { rules = [guarded, exact, open], allowPaths = [] as PathAllowance[] } = {}) =>
    compileRules({ rules, allowPaths }).match({ method: "GET", target, host: "", headers: [] });

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
  ])("request target $target matches rule $index although other rules have similar paths", ({ target, index }) =>
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

  test("near-match check finds a rule whose path differs only in letter case, even if another rule matches a more lenient reading", () => {
    const rules = [aRule({ path: { prefix: "/admin/open" }, access: "Anonymous" }), guarded, open];
    expect(match("/admin/users/7", { rules })).toHaveProperty("refused");
    const covered = [
      aRule({ path: { prefix: "/admin/a" }, access: "Anonymous" }),
      aRule({ path: { prefix: "/admin" } }),
      open,
    ];
    expect(match("/ADMIN/a%20", { rules: covered })).toHaveProperty("refused");
    expect(match("/ADMIN/a", { rules: covered })).toMatchObject({ rule: { index: 2 } });
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
  ])("path %s is rejected because of its format suffix", (target) =>
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
    const matcher = compileRules({ rules, allowPaths: [] });
    const request = { target: "/ADMIN", host: "", headers: [] };
    expect(matcher.match({ ...request, method: "DELETE" })).toHaveProperty("refused");
    expect(matcher.match({ ...request, method: "GET" })).toMatchObject({ rule: { index: 1 } });
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

describe("conditions besides method and path", () => {
  const at = (rules: PolicyRule[], request: Partial<Parameters<RuleMatcher["match"]>[0]>) =>
    compileRules({ rules, allowPaths: [] }).match({ method: "GET", target: "/", host: "", headers: [], ...request });

  test.each([
    { hosts: ["api.example.com"], host: "API.example.com.:8443", matches: true },
    { hosts: ["api.example.com"], host: "api.example.com.evil.test", matches: false },
    { hosts: ["api.example.com"], host: "", matches: false },
    { hosts: ["*.example.com"], host: "a.b.example.com", matches: true },
    { hosts: ["*.example.com"], host: "example.com", matches: false },
    { hosts: ["*.example.com"], host: ".example.com", matches: false },
    { hosts: ["*.example.com"], host: "badexample.com", matches: false },
    { hosts: ["10.0.0.1"], host: "10.0.0.1:80", matches: true },
    { hosts: ["api.example.com"], host: "[::1]:80", matches: false },
  ])("rule for hosts $hosts applies to Host $host: $matches", ({ hosts, host, matches }) => {
    expect(at([aRule({ hosts })], { host: hostNameOf(host) })).toMatchObject({ rule: { index: matches ? 0 : -1 } });
  });

  test("access for a request that matches no rule is defaultAccess", () => {
    for (const defaultAccess of ["Key", "Anonymous", "Deny"] as const) {
      const matcher = compileRules({ rules: [], allowPaths: [], defaultAccess });
      const found = matcher.match({ method: "GET", target: "/", host: "", headers: [] });
      expect(found).toMatchObject({ rule: { index: -1, access: defaultAccess } });
    }
  });

  test.each([
    { name: "a denied template", rule: { path: { template: "/orders/{id}/refund" }, access: "Deny" as const } },
    { name: "a guarded template", rule: { path: { template: "/orders/{id}/refund" }, permissions: "refund" } },
  ])("near-match spellings of $name are rejected", ({ rule }) => {
    const rules = [aRule(rule), aRule({ access: "Anonymous" })];
    for (const target of ["/Orders/7/refund", "/orders/7/REFUND", "/orders/7/refund/", "/orders/7/refund.json"]) {
      expect(at(rules, { target }), target).toHaveProperty("refused");
    }
    for (const target of ["/orders/7%2Frefund", "/orders/7/./refund", "/orders//7/refund", "/orders/7;a/refund"]) {
      expect(at(rules, { target }), target).toHaveProperty("refused");
    }
    expect(at(rules, { target: "/orders/7/refunds" })).toMatchObject({ rule: { index: 1 } });
    expect(at(rules, { target: "/orders/A.b/refund" })).toMatchObject({ rule: { index: 0 } });
  });

  test("near-match path of an anonymous rule with a limit is rejected, because it would escape the limit", () => {
    const limit = {
      scope: { kind: "name", name: "guests" } as const,
      by: ["address"],
      limit: 1,
      durationMs: 1000,
      cost: 1,
      accuracy: "strict" as const,
    };
    const rules = [
      aRule({ path: { prefix: "/catalogue" }, access: "Anonymous", ratelimits: [limit] }),
      aRule({ access: "Anonymous" }),
    ];
    expect(at(rules, { target: "/Catalogue" })).toHaveProperty("refused");
    expect(at(rules, { target: "/catalogue" })).toMatchObject({ rule: { index: 0 } });
  });

  test("anonymous rule of a format 1 policy ignores limits by key, as gates of that format do", () => {
    const limit = { limit: 1, durationMs: 1000, cost: 1, accuracy: "strict" as const };
    const scope = { kind: "name", name: "all" } as const;
    const ratelimits = [
      { ...limit, scope, identifier: "key" as const },
      { ...limit, scope, by: ["address"] },
    ];
    const matcher = compileRules({ rules: [aRule({ access: "Anonymous", ratelimits })], allowPaths: [] });
    const found = matcher.match({ method: "GET", target: "/", host: "", headers: [] });
    expect(found).toMatchObject({ rule: { ratelimits: [{ by: [{ kind: "address" }] }] } });
    const open = compileRules({
      rules: [aRule({ access: "Anonymous", ratelimits: ratelimits.slice(0, 1) })],
      allowPaths: [],
    });
    expect(open.pathDecides).toBe(false);
    expect(open.match({ method: "GET", target: "/", host: "", headers: [] })).toMatchObject({
      rule: { ratelimits: [] },
    });
  });

  test("template with braces that do not enclose a parameter is reported at policy compilation", () => {
    for (const template of ["/a{b}", "/{a}b", "/{}", "/{a...}/b", "/*", "/{a-b}"]) {
      expect(() => compileRules({ rules: [aRule({ path: { template } })], allowPaths: [] }), template).toThrow(
        TemplateError,
      );
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
