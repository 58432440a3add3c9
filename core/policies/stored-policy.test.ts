import { describe, expect, test } from "vitest";
import * as z from "zod";
import { ApiKeyPolicySpec } from "../manifests/api-key-policy.ts";
import { compilePolicy } from "../manifests/compile-policy.ts";
import { type CompiledPolicy, PolicyInput } from "./policy.ts";
import { readStoredPolicy, StoredPolicy } from "./stored-policy.ts";

/** A policy with every member. */
const whole: CompiledPolicy = {
  formatVersion: 2,
  apiId: "api_1",
  mode: "Audit",
  credentials: [
    { in: "header", name: "Authorization", scheme: "Bearer" },
    { in: "query", name: "key" },
  ],
  rules: [
    {
      methods: ["GET"],
      path: { prefix: "/a" },
      access: "Key",
      permissions: "a.read",
      creditCost: 3,
      ratelimits: [
        {
          scope: { kind: "name", name: "own" },
          identifier: "key",
          limit: 5,
          durationMs: 60_000,
          cost: 2,
          accuracy: "local",
        },
        {
          scope: { kind: "namespace", namespaceId: "rlns_1" },
          identifier: "identity",
          limit: 5,
          durationMs: 60_000,
          cost: 0,
          accuracy: "strict",
        },
      ],
    },
    { path: { exact: "/b" }, access: "Anonymous", creditCost: 1, ratelimits: [] },
    {
      name: "refund",
      path: { template: "/orders/{order}/refund" },
      hosts: ["api.example.com", "*.eu.example.com"],
      headers: [{ name: "X-Api-Version", exact: "2" }],
      access: "Key",
      creditCost: 1,
      ratelimits: [
        {
          scope: { kind: "name", name: "refunds" },
          by: ["key", "path.order"],
          limit: 5,
          durationMs: 60_000,
          cost: 1,
          accuracy: "strict",
        },
      ],
    },
  ],
  defaultAccess: "Deny",
  failedAttempts: { limit: 20, durationMs: 60_000 },
  onStale: { afterMs: 5_000, action: "Serve", denyAfterMs: 6_000 },
  onCounterFailure: "Allow",
  onCreditFailure: "Allow",
  clientAddress: { from: "forwardedFor", trustedProxies: ["10.0.0.0/8"], ipv6PrefixBits: 48 },
  allowPaths: ["Semicolon"],
};

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns a copy with an additional member in every object at every level. */
function withUnknown(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withUnknown);
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withUnknown(member)]);
  return { ...Object.fromEntries(members), ofALaterRelease: { deep: [1] } };
}

/** Returns the paths of all objects and members of the value. */
function membersOf(value: unknown, at = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => membersOf(item, `${at}[]`));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    at === "" ? name : `${at}.${name}`,
    ...membersOf(member, at === "" ? name : `${at}.${name}`),
  ]);
}

/** Returns a copy without the member at `path`. */
function without(value: unknown, path: string, at = ""): unknown {
  if (Array.isArray(value)) return value.map((item) => without(item, path, `${at}[]`));
  if (!isObject(value)) return value;
  const here = (name: string) => (at === "" ? name : `${at}.${name}`);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => here(name) !== path)
      .map(([name, member]) => [name, without(member, path, here(name))]),
  );
}

describe("a stored policy", () => {
  test("stored policy of this version is read unchanged", () => {
    expect(PolicyInput.parse(whole)).toEqual(whole);
    expect(readStoredPolicy(whole)).toEqual({ policy: whole });
  });

  test("stored policy accepts unknown members, but API input does not", () => {
    expect(readStoredPolicy(withUnknown(whole)).policy).toMatchObject(whole);
    expect(PolicyInput.safeParse(withUnknown(whole)).success).toBe(false);
  });

  test("stored policy of a newer format is invalid even if this version could read it", () => {
    const { problem } = readStoredPolicy({ ...whole, formatVersion: 3 });
    expect(problem).toBe("format 3 is not known here, where 2 is the highest");
    expect(readStoredPolicy({ formatVersion: 3, entirely: "other" }).problem).toBe(problem);
  });

  test.each([
    { name: "a mode that is not known", change: { mode: "Shadow" } },
    { name: "a credential in another place", change: { credentials: [{ in: "cookie", name: "k" }] } },
    // A reader that dropped the condition would apply the rule to every path.
    { name: "a path that is matched otherwise", change: { rules: [{ path: { regex: "^/a" }, ratelimits: [] }] } },
    {
      name: "a path that is matched in two ways",
      change: { rules: [{ path: { prefix: "/a", exact: "/b" }, ratelimits: [] }] },
    },
    { name: "no format", change: { formatVersion: undefined } },
    { name: "a format that is no number", change: { formatVersion: "1" } },
  ])("stored policy with $name is invalid, and the error contains no values", ({ change }) => {
    const { problem } = readStoredPolicy({ ...whole, ...change });
    expect(problem).toEqual(expect.any(String));
    expect(problem).not.toMatch(/Shadow|cookie|regex\^/);
  });

  test.each([null, undefined, 1, "policy", [], {}])("stored policy that is %j is invalid", (stored) => {
    expect(readStoredPolicy(stored).problem).toEqual(expect.any(String));
  });

  /** Default of each missing member. */
  const DEFAULTS: Readonly<Record<string, unknown>> = {
    mode: "Enforce",
    onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
    "onStale.afterMs": 30_000,
    "onStale.action": "Serve",
    "onStale.denyAfterMs": 900_000,
    onCounterFailure: "Local",
    onCreditFailure: "Deny",
    allowPaths: [],
    "rules[].access": "Key",
    "rules[].creditCost": 1,
    "rules[].ratelimits[].cost": 1,
    "rules[].ratelimits[].accuracy": "strict",
  };
  /** Members without a default. */
  const OPTIONAL = [
    "clientAddress",
    "clientAddress.ipv6PrefixBits",
    "credentials[].scheme",
    "defaultAccess",
    "failedAttempts",
    "rules[].name",
    "rules[].methods",
    "rules[].path",
    "rules[].hosts",
    "rules[].headers",
    "rules[].headers[].exact",
    "rules[].permissions",
    // Without both, a limit counts keys.
    "rules[].ratelimits[].identifier",
    "rules[].ratelimits[].by",
  ];

  const members = [...new Set(membersOf(whole))];
  test.each(members)(
    "stored policy without %s gets the default of this member, or is invalid if the member is required",
    (path) => {
      const stored = without(whole, path);
      const { policy, problem } = readStoredPolicy(stored);
      if (path in DEFAULTS) {
        const found = membersWith(policy, path);
        expect(found.length).toBeGreaterThan(0);
        for (const value of found) expect(value).toEqual(DEFAULTS[path]);
      } else if (OPTIONAL.includes(path)) {
        expect(policy).toEqual(stored);
      } else {
        expect(problem).toEqual(expect.any(String));
      }
    },
  );

  test("stored policy default equals the manifest default of an existing member", () => {
    expect([...Object.keys(DEFAULTS), ...OPTIONAL].filter((path) => !members.includes(path))).toEqual([]);
    const ratelimits = [{ name: "own", limit: 5, duration: "60s" }];
    const spec = ApiKeyPolicySpec.parse({ api: { name: "api" }, target: { port: 80 }, rules: [{ ratelimits }] });
    const compiled = compilePolicy(spec, { apiId: "api_1", namespaceIds: new Map() });
    for (const [path, value] of Object.entries(DEFAULTS)) expect(membersWith(compiled, path)).toEqual([value]);
  });
});

/** Returns the values of the member at `path`. */
function membersWith(value: unknown, path: string): unknown[] {
  let found: unknown[] = [value];
  for (const step of path.split(".")) {
    const name = step.replaceAll("[]", "");
    found = found.map((one) => (one as Record<string, unknown>)[name]);
    if (step.endsWith("[]")) found = found.flat();
  }
  return found;
}

test("stored policy fixture has every member of the schema", () => {
  const named = new Set(membersOf(whole));
  const inSchema = propertiesOf(z.toJSONSchema(PolicyInput) as JsonSchema);
  expect(inSchema.filter((path) => !named.has(path))).toEqual([]);
  expect(propertiesOf(z.toJSONSchema(StoredPolicy, { io: "input" }) as JsonSchema)).toEqual(inSchema);
});

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

function propertiesOf(schema: JsonSchema, at = ""): string[] {
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) return [...new Set(alternatives.flatMap((one) => propertiesOf(one, at)))];
  if (schema.items !== undefined) return propertiesOf(schema.items, `${at}[]`);
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const path = at === "" ? name : `${at}.${name}`;
    return [path, ...propertiesOf(member, path)];
  });
}
