import { describe, expect, test } from "vitest";
import type { CompiledPolicy, PolicyRule } from "./policy.ts";
import { formatOf } from "./policy-format.ts";

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
  ])("policy with $name has format 2", ({ changes }) => {
    expect(formatOf(aPolicy(changes))).toBe(2);
  });
});
