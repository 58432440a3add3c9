import { describe, expect, test } from "vitest";
import { PolicyInput } from "../policies/policy.ts";
import { ApiKeyPolicySpec } from "./api-key-policy.ts";
import { compilePolicy, namespacesOf } from "./compile-policy.ts";

const aSpec = (spec: Record<string, unknown> = {}): ApiKeyPolicySpec =>
  ApiKeyPolicySpec.parse({ api: { name: "orders" }, target: { port: 80 }, ...spec });
const compile = (spec: ApiKeyPolicySpec, namespaceIds = new Map<string, string>()) =>
  compilePolicy(spec, { apiId: "api_1", namespaceIds });

describe("a compiled policy", () => {
  test("compiled policy has ids for names, milliseconds for durations and all defaults", () => {
    const spec = aSpec({
      credentials: [{ header: { name: "Authorization", scheme: "Bearer" } }, { query: { name: "key" } }],
      rules: [
        { match: { methods: ["GET"], path: { prefix: "/healthz" } }, access: "Anonymous" },
        {
          match: { path: { exact: "/orders" } },
          permissions: "orders.write",
          credits: { cost: 2 },
          ratelimits: [
            { name: "writes", limit: 100, duration: "60s", async: true },
            { namespace: "public-api", identifier: "Identity", limit: 5000, duration: 3_600_000, cost: 3 },
          ],
        },
      ],
      clientAddress: { from: "ForwardedFor", trustedProxies: ["10.0.0.0/8"] },
      allowPaths: ["Semicolon"],
    });
    const policy = compile(spec, new Map([["public-api", "rlns_1"]]));
    expect(policy).toEqual({
      formatVersion: 1,
      apiId: "api_1",
      mode: "Enforce",
      credentials: [
        { in: "header", name: "Authorization", scheme: "Bearer" },
        { in: "query", name: "key" },
      ],
      rules: [
        { methods: ["GET"], path: { prefix: "/healthz" }, access: "Anonymous", creditCost: 1, ratelimits: [] },
        {
          path: { exact: "/orders" },
          access: "Key",
          permissions: "orders.write",
          creditCost: 2,
          ratelimits: [
            {
              scope: { kind: "name", name: "writes" },
              identifier: "key",
              limit: 100,
              durationMs: 60_000,
              cost: 1,
              accuracy: "local",
            },
            {
              scope: { kind: "namespace", namespaceId: "rlns_1" },
              identifier: "identity",
              limit: 5000,
              durationMs: 3_600_000,
              cost: 3,
              accuracy: "strict",
            },
          ],
        },
      ],
      onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
      onCounterFailure: "Local",
      onCreditFailure: "Deny",
      clientAddress: { from: "forwardedFor", trustedProxies: ["10.0.0.0/8"] },
      allowPaths: ["Semicolon"],
    });
    expect(PolicyInput.parse(policy)).toEqual(policy);
  });

  test("compiled policy of an empty spec requires a valid key for every request", () => {
    const policy = compile(aSpec({ clientAddress: { from: "Connection" } }));
    expect(PolicyInput.parse(policy)).toMatchObject({ rules: [], clientAddress: { from: "connection" } });
    expect(compile(aSpec())).not.toHaveProperty("clientAddress");
  });

  test("compiled policy with every manifest field at its bound is accepted by the API", () => {
    const limit = { name: "n".repeat(255), limit: Number.MAX_SAFE_INTEGER, duration: "1s" };
    const ratelimits = Array.from({ length: 16 }, (_, i) => ({ ...limit, duration: 1000 + i }));
    const path = { prefix: `/${"a".repeat(1023)}` };
    const rule = { permissions: "p".repeat(1000), credits: { cost: 1_000_000_000_000 }, match: { path }, ratelimits };
    const policy = compile(aSpec({ rules: [rule, ...new Array(255).fill({})] }));
    expect(PolicyInput.safeParse(policy).error).toBeUndefined();
  });
});

test("policy compilation reports a missing rate limit namespace with its location", () => {
  const limit = { namespace: "gone", identifier: "Key", limit: 1, duration: "1s" };
  const spec = aSpec({ rules: [{}, { ratelimits: [limit] }] });
  expect(compile(spec)).toEqual([
    { location: "spec.rules[1].ratelimits[0].namespace", message: 'the rate-limit namespace "gone" does not exist' },
  ]);
});

test("policy lists each referenced rate-limit namespace only once", () => {
  const limitOf = (namespace: string, limit: number) => ({ namespace, identifier: "Key", limit, duration: "1s" });
  const spec = aSpec({
    rules: [
      { ratelimits: [limitOf("a", 1), limitOf("b", 1)] },
      { ratelimits: [limitOf("a", 2), { name: "c", limit: 1, duration: "1s" }] },
    ],
  });
  expect(namespacesOf(spec)).toEqual(["a", "b"]);
});
