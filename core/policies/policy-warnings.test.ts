import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { slowMatch } from "../../test/builders/slow-matcher.ts";
import type { PolicyRule } from "./policy.ts";
import { policyWarnings } from "./policy-warnings.ts";

const aRule = (rule: Partial<PolicyRule> = {}): PolicyRule => ({
  access: "Key",
  creditCost: 1,
  ratelimits: [],
  ...rule,
});
const warningsOf = (rules: readonly Partial<PolicyRule>[], defaultAccess?: "Key" | "Anonymous" | "Deny") =>
  policyWarnings({ rules: rules.map(aRule), allowPaths: [], defaultAccess });
const SHADOWED = "no request reaches this rule";
const shadowedIn = (rules: readonly Partial<PolicyRule>[]): number[] =>
  warningsOf(rules, "Deny").map(({ rule }) => rule);

describe("a rule is reported as shadowed if an earlier rule", () => {
  test.each<{ name: string; rules: Partial<PolicyRule>[] }>([
    { name: "matches every request", rules: [{}, { methods: ["GET"], path: { prefix: "/a" } }] },
    { name: "is the same", rules: [{ path: { exact: "/a" } }, { path: { exact: "/a" } }] },
    { name: "spells its path differently", rules: [{ path: { exact: "/caf%c3%a9" } }, { path: { exact: "/café" } }] },
    { name: "has a shorter prefix", rules: [{ path: { prefix: "/a" } }, { path: { template: "/a/{b}/c" } }] },
    { name: "has a rest", rules: [{ path: { template: "/a/{b...}" } }, { path: { prefix: "/a/b" } }] },
    { name: "has a parameter", rules: [{ path: { template: "/{a}/b" } }, { path: { exact: "/x/b" } }] },
    { name: "names other parameters", rules: [{ path: { template: "/{a}" } }, { path: { template: "/{b}" } }] },
    { name: "has more methods", rules: [{ methods: ["GET", "POST"] }, { methods: ["POST"] }] },
    { name: "matches names below", rules: [{ hosts: ["*.a.test"] }, { hosts: ["b.a.test", "*.c.a.test"] }] },
    { name: "matches any value", rules: [{ headers: [{ name: "x-a" }] }, { headers: [{ name: "X-A", exact: "1" }] }] },
    {
      name: "has no headers",
      rules: [{ path: { prefix: "/a" } }, { path: { prefix: "/a" }, headers: [{ name: "b" }] }],
    },
  ])("$name", ({ rules }) => expect(shadowedIn(rules)).toEqual([1]));

  test("rule is shadowed if two earlier rules together match all of its methods or hosts", () => {
    const rules = [{ methods: ["GET" as const] }, { methods: ["POST" as const], name: "writes" }];
    const [warning] = warningsOf([...rules, { methods: ["GET", "POST"], path: { prefix: "/a" } }], "Deny");
    expect(warning).toEqual({
      rule: 2,
      message: expect.stringContaining(`${SHADOWED}, because rules[0] and rules[1] (writes) together match all`),
    });
    expect(shadowedIn([{ hosts: ["a.test"] }, { hosts: ["b.test"] }, { hosts: ["a.test", "b.test"] }])).toEqual([2]);
  });
});

test.each<{ name: string; rules: Partial<PolicyRule>[] }>([
  {
    name: "the earlier rule names the nine methods",
    rules: [{ methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"] }, {}],
  },
  { name: "a path below an exact one", rules: [{ path: { exact: "/a" } }, { path: { prefix: "/a" } }] },
  { name: "the path itself before a rest", rules: [{ path: { template: "/a/{b...}" } }, { path: { prefix: "/a" } }] },
  { name: "an empty segment", rules: [{ path: { template: "/a/{b}" } }, { path: { exact: "/a/" } }] },
  { name: "another first segment", rules: [{ path: { prefix: "/a" } }, { path: { prefix: "/ab" } }] },
  { name: "a name that is not below", rules: [{ hosts: ["*.a.test"] }, { hosts: ["a.test"] }] },
  { name: "names below a host", rules: [{ hosts: ["a.test"] }, { hosts: ["*.a.test"] }] },
  { name: "every host", rules: [{ hosts: ["a.test"] }, {}] },
  { name: "another value", rules: [{ headers: [{ name: "a", exact: "1" }] }, { headers: [{ name: "a" }] }] },
  { name: "one of two headers", rules: [{ headers: [{ name: "a" }, { name: "b" }] }, { headers: [{ name: "a" }] }] },
])("a rule that can be reached is not reported: $name", ({ rules }) => expect(shadowedIn(rules)).toEqual([]));

describe("methods without a rule", () => {
  const guarded: Partial<PolicyRule> = { methods: ["POST"], path: { prefix: "/orders" }, permissions: "write" };

  test("methods without a rule are reported once per guarded path, with the effect on requests with these methods", () => {
    const rules: Partial<PolicyRule>[] = [
      guarded,
      { methods: ["GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"], path: { prefix: "/orders" } },
      { ...guarded, methods: ["PUT"] },
    ];
    expect(warningsOf(rules)).toEqual([
      {
        rule: 0,
        message:
          "on its path, no rule matches PATCH, DELETE and methods that a rule cannot name, so these requests pass with any key of the API; add a rule, or set defaultAccess: Deny",
      },
    ]);
    expect(warningsOf(rules, "Anonymous")[0]?.message).toContain("pass without a key");
    expect(warningsOf(rules, "Deny")).toEqual([]);
  });

  test.each<{ name: string; rules: Partial<PolicyRule>[] }>([
    { name: "a later rule for every method", rules: [guarded, { path: { template: "/orders/{id}" } }] },
    { name: "a rule without requirements", rules: [{ methods: ["POST"], path: { prefix: "/orders" } }] },
    { name: "an anonymous rule", rules: [{ methods: ["GET"], path: { prefix: "/a" }, access: "Anonymous" }] },
    { name: "a rule for every method", rules: [{ path: { prefix: "/a" }, permissions: "a" }] },
    { name: "a method that is denied everywhere", rules: [{ methods: ["TRACE"], access: "Deny" }] },
  ])("are not reported for $name", ({ rules }) => expect(warningsOf(rules)).toEqual([]));

  test.each<{ name: string; rules: Partial<PolicyRule>[] }>([
    { name: "a denied path", rules: [{ methods: ["POST"], path: { prefix: "/a" }, access: "Deny" }] },
    { name: "a permission on every path", rules: [{ methods: ["POST"], permissions: "a" }] },
    { name: "a rule for another path", rules: [guarded, { path: { exact: "/other" } }] },
    { name: "a rule for another host", rules: [{ ...guarded, hosts: ["a.test"] }, { hosts: ["b.test"] }] },
  ])("are reported for $name", ({ rules }) => expect(warningsOf(rules)).toMatchObject([{ rule: 0 }]));
});

test("no request reaches a rule that is reported as shadowed, and no rule matches an unguarded method", () => {
  const paths = ["/", "/a", "/a/", "/ab", "/b", "/a/b", "/a/b/", "/b/a", "/a/a/b", "/b/ab/a"];
  const hosts = ["test", "a.test", "b.a.test", "c.b.a.test", "xa.test"];
  const headers: Record<string, string>[] = [
    {},
    { "x-a": "1" },
    { "x-a": "2" },
    { "x-a": "1", "x-b": "1" },
    { "x-b": "2" },
  ];
  const methods = ["GET", "POST", "DELETE", "PURGE"];
  const requests = methods.flatMap((method) =>
    paths.flatMap((path) => hosts.flatMap((host) => headers.map((some) => ({ method, path, host, headers: some })))),
  );
  const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 4 });
  const template = fc.constantFrom("/{x}", "/a/{x}", "/{x}/b", "/{x}/{y}", "/a/{x...}", "/{x...}", "/{x}/{y...}");
  const rule = fc.record({
    access: fc.constantFrom("Key" as const, "Deny" as const),
    permissions: fc.constant("a"),
    methods: optional(fc.subarray(["GET", "POST", "DELETE"] as const, { minLength: 1 })),
    path: optional(
      fc.oneof(
        fc.constantFrom(...paths).map((prefix) => ({ prefix })),
        fc.constantFrom(...paths).map((exact) => ({ exact })),
        template.map((text) => ({ template: text })),
      ),
    ),
    hosts: optional(fc.subarray([...hosts, "*.test", "*.a.test", "*.b.a.test"], { minLength: 1, maxLength: 2 })),
    headers: optional(fc.subarray([{ name: "X-A" }, { name: "x-a", exact: "1" }, { name: "x-b" }], { minLength: 1 })),
  });
  const seen = { shadowed: 0, unguarded: 0 };
  fc.assert(
    fc.property(fc.array(rule, { minLength: 2, maxLength: 5 }), (changes) => {
      const rules = changes.map((change) => aRule(withoutUndefined(change)));
      const reached = new Set(requests.map((request) => slowMatch(rules, request)));
      for (const { rule: index, message } of policyWarnings({ rules, allowPaths: [] })) {
        if (message.startsWith(SHADOWED)) {
          seen.shadowed += 1;
          expect(reached).not.toContain(index);
          continue;
        }
        const { methods: _, ...ofPath } = rules[index] as PolicyRule;
        const unguarded = methods.filter((method) => message.includes(method === "PURGE" ? "cannot name" : method));
        seen.unguarded += 1;
        expect(unguarded).not.toEqual([]);
        for (const request of requests) {
          if (!unguarded.includes(request.method) || slowMatch([ofPath], request) === -1) continue;
          expect(slowMatch(rules, request), JSON.stringify(request)).toBe(-1);
        }
      }
    }),
    { numRuns: 400 },
  );
  expect(seen.shadowed).toBeGreaterThan(50);
  expect(seen.unguarded).toBeGreaterThan(50);
});

const withoutUndefined = (value: object): Partial<PolicyRule> =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
