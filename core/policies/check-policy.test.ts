import { describe, expect, test } from "vitest";
import { checkPolicy, formatOf } from "./check-policy.ts";
import type { CompiledPolicy, PolicyRule } from "./policy.ts";

const aPolicy = (changes: Partial<CompiledPolicy> = {}): CompiledPolicy => ({
  formatVersion: 2,
  apiId: "api_1",
  mode: "Enforce",
  credentials: [{ in: "header", name: "X-API-Key" }],
  rules: [],
  onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
  onCounterFailure: "Local",
  onCreditFailure: "Deny",
  clientAddress: { from: "connection" },
  allowPaths: [],
  ...changes,
});
const aRule = (changes: Partial<PolicyRule> = {}): PolicyRule => ({
  access: "Key",
  creditCost: 1,
  ratelimits: [],
  ...changes,
});
const limitBy = (...by: string[]): PolicyRule["ratelimits"] => [
  { scope: { kind: "name", name: "n" }, by, limit: 1, durationMs: 1000, cost: 1, accuracy: "strict" },
];

describe("format of a policy", () => {
  const byKey = { ...limitBy("key")[0], by: undefined, identifier: "key" } as PolicyRule["ratelimits"][number];

  test("policy without members of format 2 has format 1", () => {
    expect(formatOf(aPolicy({ rules: [aRule({ ratelimits: [byKey] }), aRule({ access: "Anonymous" })] }))).toBe(1);
  });

  test.each<{ name: string; changes: Partial<CompiledPolicy> }>([
    { name: "defaultAccess", changes: { defaultAccess: "Deny" } },
    { name: "failedAttempts", changes: { failedAttempts: { limit: 1, durationMs: 1000 } } },
    { name: "an IPv6 prefix", changes: { clientAddress: { from: "connection", ipv6PrefixBits: 48 } } },
    { name: "the name of a rule", changes: { rules: [aRule({ name: "a" })] } },
    { name: "hosts", changes: { rules: [aRule({ hosts: ["a"] })] } },
    { name: "headers", changes: { rules: [aRule({ headers: [{ name: "A" }] })] } },
    { name: "access Deny", changes: { rules: [aRule({ access: "Deny" })] } },
    { name: "a template", changes: { rules: [aRule({ path: { template: "/{a}" } })] } },
    { name: "by", changes: { rules: [aRule({ ratelimits: limitBy("method") })] } },
  ])("policy with $name has format 2, and format 1 is rejected", ({ changes }) => {
    expect(formatOf(aPolicy(changes))).toBe(2);
    expect(checkPolicy(aPolicy(changes))).toEqual([]);
    expect(checkPolicy(aPolicy({ ...changes, formatVersion: 1 }))).toEqual([
      { location: "formatVersion", message: expect.stringContaining("expected 2") },
    ]);
  });
});

test.each<{ name: string; changes: Partial<CompiledPolicy>; location: string }>([
  { name: "an invalid query", changes: { rules: [aRule({ permissions: "a AND" })] }, location: "rules[0].permissions" },
  {
    name: "an invalid template",
    changes: { rules: [aRule(), aRule({ path: { template: "/{a}b" } })] },
    location: "rules[1].path.template",
  },
  {
    name: "a repeated name",
    changes: { rules: [aRule({ name: "a" }), aRule({ name: "a" })] },
    location: "rules[1].name",
  },
  {
    name: "a limit by an unknown parameter",
    changes: { rules: [aRule({ path: { template: "/{a}" }, ratelimits: limitBy("key", "path.b") })] },
    location: "rules[0].ratelimits[0].by",
  },
  {
    name: "a limit by key without a key",
    changes: { rules: [aRule({ access: "Anonymous", ratelimits: limitBy("host", "key") })] },
    location: "rules[0].ratelimits[0].by",
  },
  {
    name: "a limit by address without clientAddress",
    changes: { rules: [aRule({ ratelimits: limitBy("address") })], clientAddress: undefined },
    location: "rules[0].ratelimits[0].by",
  },
  {
    name: "failedAttempts without clientAddress",
    changes: { failedAttempts: { limit: 1, durationMs: 1000 }, clientAddress: undefined },
    location: "failedAttempts",
  },
])("policy with $name is rejected with the location", ({ changes, location }) => {
  expect(checkPolicy(aPolicy(changes))).toEqual([{ location, message: expect.any(String) }]);
});
