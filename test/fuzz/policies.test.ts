import fc from "fast-check";
import { expect, test } from "vitest";
import type { PathAllowance, PolicyRule } from "../../core/policies/policy.ts";
import { evaluateHead, type HeadDecision } from "../../sidecar/decision/evaluate-head.ts";
import { readPolicy } from "../../sidecar/policy/active-policy.ts";
import { type PlainRequest, readingsOf, slowMatch } from "../builders/slow-matcher.ts";
import { aPolicy, aRule } from "../harness/gate.ts";

/*
 * Generated policies and requests, whose parts are spelled in unusual ways. The gate must either reject a request, or apply the rule that
 * the slow reference matcher finds, also for an app that reads the path leniently.
 */

const RUNS = 4_000;

// Half of the values are absent. With more of them, few rules would match a request.
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 1 });
const name = fc.constantFrom("a", "ab", "Admin");
const pathOf = (segment: fc.Arbitrary<string>) =>
  fc.array(segment, { minLength: 1, maxLength: 3 }).map((segments) => `/${segments.join("/")}`);
const template = fc
  .tuple(pathOf(fc.oneof(name, fc.constantFrom("{x}", "{y}"))), fc.constantFrom("", "/{rest...}"))
  .map(([path, rest]) => ({ template: path + rest }));

const rule: fc.Arbitrary<PolicyRule> = fc
  .record({
    methods: optional(fc.subarray(["GET", "POST"] as const, { minLength: 1 })),
    path: optional(
      fc.oneof(
        pathOf(name).map((prefix) => ({ prefix })),
        pathOf(name).map((exact) => ({ exact })),
        template,
      ),
    ),
    hosts: optional(fc.subarray(["a.test", "*.a.test", "b.test"], { minLength: 1, maxLength: 2 })),
    headers: optional(
      fc.subarray([{ name: "X-A" }, { name: "X-B", exact: "1" }, { name: "X_C" }], { minLength: 1, maxLength: 2 }),
    ),
    access: fc.constantFrom("Key", "Anonymous", "Deny"),
    permissions: fc.constantFrom(undefined, "p", "p", "q"),
  })
  .map(({ permissions, ...rest }) => {
    const all = { ...rest, permissions: rest.access === "Key" ? permissions : undefined };
    return aRule(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)));
  });

/** A segment, and spellings that some app reads as it. */
const segment = fc.oneof(
  { weight: 3, arbitrary: name },
  { weight: 1, arbitrary: fc.constantFrom("7", "", ".", "..", "%2e%2E", "a%2Fab", "a%5Cab", "%c0%af", "%00", "%ff") },
  {
    weight: 2,
    arbitrary: fc.constantFrom("A", "admin", "%61", "%2561", "a;x=1", "a%3B", "a.", "a%20", "%EF%BD%81", "a%0A", "a.."),
  },
);
const ALLOWANCES: PathAllowance[] = ["EncodedSlash", "Backslash", "DoubleSlash", "Semicolon", "DotSegments"];

const header = fc.tuple(
  fc.constantFrom("X-A", "x-a", "X_A", "X-B", "x-b", "X_C", "x-c", "X.B", "X-D"),
  fc.constantFrom("1", "", "2", "1\xa0", "\xff", "1, 1"),
);
const host = fc.record({
  name: fc.constantFrom("a.test", "b.a.test", "c.b.a.test", "b.test", "xa.test", "test"),
  spell: fc.constantFrom<(name: string) => string>(
    (text) => text,
    (text) => text.toUpperCase(),
    (text) => `${text}:8080`,
    (text) => `${text}.`,
    (text) => `${text}.:1`,
  ),
});
const request = fc.record({
  method: fc.constantFrom("GET", "POST", "PUT"),
  target: pathOf(segment),
  isAbsolute: fc.boolean(),
  host,
  headers: fc.array(header, { maxLength: 2 }),
});

const cgiName = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, "_");

/** What a rule requires, and what a decision shows of it. */
const requirementOf = ({ access, permissions = "" }: Pick<PolicyRule, "access" | "permissions">): string =>
  access === "Key" ? `key ${permissions}` : access;

function requirementIn(decision: HeadDecision, rules: readonly PolicyRule[], fallback: PolicyRule): string {
  if (decision.kind === "pass") return "Anonymous";
  if (decision.kind !== "refuse") throw new Error(`a ${decision.kind} without a key or a limit`);
  if (decision.decision === "MALFORMED") return "rejected";
  return requirementOf(rules[decision.rule ?? -1] ?? fallback);
}

test("gate applies the same rule to a generated request as the reference matcher, or rejects the request", () => {
  const seen = new Map<string, number>();
  const policy = fc.record({
    rules: fc.array(rule, { minLength: 1, maxLength: 6 }),
    defaultAccess: fc.constantFrom("Key" as const, "Anonymous" as const, "Deny" as const),
    allowPaths: fc.subarray(ALLOWANCES),
  });
  fc.assert(
    fc.property(
      policy,
      request,
      (changes, { method, target, isAbsolute, host: { name: hostName, spell }, headers }) => {
        const compiled = aPolicy({ formatVersion: 2, ...changes });
        const record = { policyId: "p", name: "p", apiId: "a", uid: "u", generation: 1, version: 1, policy: compiled };
        const active = readPolicy(record);
        if ("problem" in active) throw new Error(active.problem);
        const sentHost = spell(hostName);
        const asked = {
          method,
          url: isAbsolute ? `http://${sentHost}${target}` : target,
          httpVersion: "1.1",
          rawHeaders: ["Host", sentHost, ...headers.flat()],
          socket: { remoteAddress: "192.0.2.1" },
        };
        const fallback = aRule({ access: changes.defaultAccess });
        const { rules } = changes;
        const found = requirementIn(evaluateHead(asked, "request", active), rules, fallback);
        seen.set(found, (seen.get(found) ?? 0) + 1);

        const matched = rules.flatMap((one) => (one.headers ?? []).map(({ name: of }) => of.toLowerCase()));
        const isAmbiguous = matched.some((one) => {
          const alike = headers.filter(([of]) => cgiName(of) === cgiName(one));
          return alike.length > 1 || alike.some(([of]) => of.toLowerCase() !== one);
        });
        if (isAmbiguous) {
          expect(found).toBe("rejected");
          return;
        }
        const plain = (path: string): PlainRequest => ({
          method,
          path,
          host: hostName,
          headers: Object.fromEntries(headers.map(([of, value]) => [of.toLowerCase(), value])),
        });
        const requires = (path: string, options?: { isLenient: boolean }): string =>
          requirementOf(rules[slowMatch(rules, plain(path), options)] ?? fallback);
        const isPlain = /^(\/(a|ab|7))+$/.test(target);
        if (found === "rejected") {
          if (isPlain) expect(requires(target, { isLenient: true })).not.toBe(requires(target));
          return;
        }
        if (isPlain) expect(found).toBe(requires(target));
        // The gate forwards unreserved characters unencoded.
        for (const reading of readingsOf(target.replaceAll("%61", "a"))) {
          expect(["Anonymous", found], reading).toContain(requires(reading, { isLenient: true }));
        }
      },
    ),
    { numRuns: RUNS },
  );
  // Proves that the generated requests reach every outcome.
  for (const outcome of ["rejected", "Anonymous", "Deny", "key ", "key p", "key q"]) {
    expect(seen.get(outcome), outcome).toBeGreaterThan(RUNS / 500);
  }
});
