import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkManifest, parseManifest } from "./check.ts";

type Fields = Record<string, unknown>;
const aManifest = (kind: string, spec: unknown): Fields => ({
  apiVersion: "postern.dev/v1alpha1",
  kind,
  metadata: { name: "orders", namespace: "shop" },
  spec,
});
const aPolicy = (spec: Fields = {}): Fields =>
  aManifest("ApiKeyPolicy", { api: { name: "orders" }, target: { port: "http" }, ...spec });
const withRule = (rule: Fields): Fields => aPolicy({ rules: [rule] });
const withLimit = (limit: Fields): Fields =>
  withRule({ ratelimits: [{ name: "writes", limit: 1, duration: "60s", ...limit }] });
const anOverride = (spec: Fields = {}): Fields =>
  aManifest("RatelimitOverride", {
    namespaceRef: { name: "public-api" },
    identifier: "premium_*",
    limit: 1,
    duration: "1h",
    ...spec,
  });
const aRole = (spec: Fields = {}): Fields => aManifest("Role", { name: "orders.editor", ...spec });
const aNamespace = (spec: Fields = {}): Fields => aManifest("RatelimitNamespace", { name: "public-api", ...spec });
const times = <T>(count: number, item: T): T[] => new Array<T>(count).fill(item);

describe("a valid manifest", () => {
  const fullSpec = {
    selector: { matchLabels: { app: "orders" } },
    api: { name: "orders" },
    target: { port: "http" },
    interception: "Port",
    credentials: [{ header: { name: "Authorization", scheme: "Bearer" } }, { header: { name: "X-API-Key" } }],
    rules: [
      { match: { methods: ["GET"], path: { prefix: "/healthz" } }, access: "Anonymous" },
      {
        match: { methods: ["POST", "PUT"], path: { prefix: "/orders" } },
        permissions: "orders.write OR orders.admin",
        credits: { cost: 1 },
        ratelimits: [
          { name: "writes", limit: 100, duration: "60s" },
          { namespace: "public-api", identifier: "Identity", limit: 5000, duration: "1h" },
        ],
      },
    ],
    mode: "Enforce",
    onStale: { after: "30s", action: "Serve", denyAfter: "15m" },
    onCounterFailure: "Local",
  };

  test.each([
    { name: "a policy with most of its fields", manifest: aManifest("ApiKeyPolicy", fullSpec) },
    { name: "the smallest policy", manifest: aPolicy() },
    { name: "a policy on an API by id", manifest: aPolicy({ api: { id: "api_12345" } }) },
    { name: "256 rules", manifest: aPolicy({ rules: times(256, {}) }) },
    { name: "a namespace", manifest: aNamespace({ deletionPolicy: "Orphan" }) },
    { name: "an override", manifest: anOverride({ async: true }) },
    { name: "an override of nothing at all", manifest: anOverride({ limit: 0, duration: 1000 }) },
    { name: "a role", manifest: aRole({ description: "", permissions: ["orders.read", "orders.write"] }) },
    {
      name: "an object as Kubernetes gives it",
      manifest: { ...aRole(), metadata: { name: "a", uid: "1", generation: 3, managedFields: [] }, status: { x: 1 } },
    },
  ])("checkManifest accepts a manifest with $name", ({ manifest }) => expect(checkManifest(manifest)).toEqual([]));

  test("checkManifest applies the defaults of the manifest kind", () => {
    const specOf = (manifest: Fields): unknown => {
      const parsed = parseManifest(manifest);
      return "manifest" in parsed ? parsed.manifest.spec : parsed.problems;
    };
    expect(specOf(aPolicy({ rules: [{}] }))).toEqual({
      api: { name: "orders" },
      target: { port: "http", protocol: "http1" },
      interception: "Port",
      credentials: [{ header: { name: "Authorization", scheme: "Bearer" } }, { header: { name: "X-API-Key" } }],
      rules: [{ match: {}, access: "Key", ratelimits: [] }],
      defaultAccess: "Key",
      mode: "Enforce",
      onStale: { after: "30s", action: "Serve", denyAfter: "15m" },
      onCounterFailure: "Local",
      onCreditFailure: "Deny",
      allowPaths: [],
      networkPolicy: "Managed",
      allowedNamespaces: [],
      deletionPolicy: "Orphan",
    });
    expect(specOf(aRole())).toEqual({ name: "orders.editor", permissions: [] });
    expect(specOf(aNamespace())).toEqual({ name: "public-api", allowedNamespaces: [], deletionPolicy: "Delete" });
    expect(specOf(anOverride())).toMatchObject({ async: false, deletionPolicy: "Delete" });
  });
});

describe("an invalid manifest", () => {
  test.each<{ name: string; manifest: unknown; location: string; message: RegExp }>([
    { name: "no object", manifest: "text", location: "manifest", message: /expected object/ },
    {
      name: "another version",
      manifest: { ...aRole(), apiVersion: "postern.dev/v2" },
      location: "apiVersion",
      message: /expected postern\.dev\/v1alpha1/,
    },
    {
      name: "another kind",
      manifest: { ...aRole(), kind: "Rule" },
      location: "kind",
      message: /expected one of ApiKey, ApiKeyPolicy, .*Role/,
    },
    {
      name: "a kind by the name of a method",
      manifest: { ...aRole(), kind: "toString" },
      location: "kind",
      message: /expected one of/,
    },
    { name: "no spec", manifest: aManifest("Role", undefined), location: "spec", message: /required/ },
    { name: "no name", manifest: { ...aRole(), metadata: {} }, location: "metadata.name", message: /required/ },
    {
      name: "a name that Kubernetes refuses",
      manifest: { ...aRole(), metadata: { name: "A_b" } },
      location: "metadata.name",
      message: /expected the name of an object/,
    },
    {
      name: "an unknown field at the top",
      manifest: { ...aRole(), specs: {} },
      location: "specs",
      message: /not a known field/,
    },
    {
      name: "an unknown field in a policy",
      manifest: aPolicy({ rule: [] }),
      location: "spec.rule",
      message: /not a known field/,
    },
    {
      name: "an unknown field deep in a policy",
      manifest: withRule({ match: { paths: "/" } }),
      location: "spec.rules[0].match.paths",
      message: /not a known field/,
    },
    {
      name: "an unknown field with a strange name",
      manifest: aRole({ "a b": 1 }),
      location: 'spec["a b"]',
      message: /not a known field/,
    },
    {
      name: "a wrong type",
      manifest: aRole({ permissions: "orders.read" }),
      location: "spec.permissions",
      message: /expected array/,
    },
    { name: "a number as text", manifest: anOverride({ limit: "5" }), location: "spec.limit", message: /expected/ },
    {
      name: "neither name nor id of an API",
      manifest: aPolicy({ api: {} }),
      location: "spec.api",
      message: /exactly one of name and id/,
    },
    {
      name: "name and id of an API",
      manifest: aPolicy({ api: { name: "orders", id: "api_12345" } }),
      location: "spec.api",
      message: /exactly one of name and id/,
    },
    {
      name: "a port that is none",
      manifest: aPolicy({ target: { port: 0 } }),
      location: "spec.target.port",
      message: />=1/,
    },
    {
      name: "a port's name that is none",
      manifest: aPolicy({ target: { port: "HTTP!" } }),
      location: "spec.target.port",
      message: /expected a port/,
    },
    {
      name: "a protocol that is not supported",
      manifest: aPolicy({ target: { port: 80, protocol: "http3" } }),
      location: "spec.target.protocol",
      message: /expected http1 or h2c/,
    },
    {
      name: "an unknown mode",
      manifest: aPolicy({ mode: "enforce" }),
      location: "spec.mode",
      message: /Enforce.*Audit/,
    },
    {
      name: "no credentials",
      manifest: aPolicy({ credentials: [] }),
      location: "spec.credentials",
      message: /Too small/,
    },
    {
      name: "nine credentials",
      manifest: aPolicy({ credentials: times(9, { header: { name: "X" } }) }),
      location: "spec.credentials",
      message: /Too big/,
    },
    {
      name: "a credential in two places",
      manifest: aPolicy({ credentials: [{ header: { name: "X" }, query: { name: "x" } }] }),
      location: "spec.credentials[0]",
      message: /exactly one of header and query/,
    },
    {
      name: "a credential twice",
      manifest: aPolicy({ credentials: [{ header: { name: "X-Key" } }, { header: { name: "x-key" } }] }),
      location: "spec.credentials[1]",
      message: /same location/,
    },
    {
      name: "a header's name that is none",
      manifest: aPolicy({ credentials: [{ header: { name: "X Key" } }] }),
      location: "spec.credentials[0].header.name",
      message: /name of a header/,
    },
    { name: "1,000 rules", manifest: aPolicy({ rules: times(1000, {}) }), location: "spec.rules", message: /<=256/ },
    {
      name: "17 limits",
      manifest: withRule({ ratelimits: times(17, { name: "a", limit: 1, duration: "1s" }) }),
      location: "spec.rules[0].ratelimits",
      message: /<=16/,
    },
    {
      name: "a broken permission query",
      manifest: withRule({ permissions: "orders.read AND" }),
      location: "spec.rules[0].permissions",
      message: /Position 15: .*expected a permission/,
    },
    {
      name: "a permission query of white space",
      manifest: withRule({ permissions: "  " }),
      location: "spec.rules[0].permissions",
      message: /permission query is invalid/,
    },
    {
      name: "prefix and exact",
      manifest: withRule({ match: { path: { prefix: "/a", exact: "/b" } } }),
      location: "spec.rules[0].match.path",
      message: /exactly one of prefix, exact and template/,
    },
    {
      name: "a path without a slash",
      manifest: withRule({ match: { path: { prefix: "a" } } }),
      location: "spec.rules[0].match.path.prefix",
      message: /begins with \//,
    },
    {
      name: "a path with a dot segment",
      manifest: withRule({ match: { path: { exact: "/a/../b" } } }),
      location: "spec.rules[0].match.path.exact",
      message: /no request can match/,
    },
    {
      name: "a path with a query",
      manifest: withRule({ match: { path: { prefix: "/a?b" } } }),
      location: "spec.rules[0].match.path.prefix",
      message: /no query/,
    },
    {
      name: "an unknown method",
      manifest: withRule({ match: { methods: ["get"] } }),
      location: "spec.rules[0].match.methods[0]",
      message: /expected one of/,
    },
    {
      name: "an Anonymous rule with permissions",
      manifest: withRule({ access: "Anonymous", permissions: "a" }),
      location: "spec.rules[0]",
      message: /only a rule with access Key/,
    },
    {
      name: "an Anonymous rule with a limit by key",
      manifest: withRule({ access: "Anonymous", ratelimits: [{ name: "a", limit: 1, duration: "1s" }] }),
      location: "spec.rules[0].ratelimits[0]",
      message: /requires `by` without key and identity/,
    },
    {
      name: "a limit by a parameter that the template does not have",
      manifest: withRule({
        match: { path: { template: "/orders/{order}" } },
        ratelimits: [{ name: "a", by: ["path.ordr"], limit: 1, duration: "1s" }],
      }),
      location: "spec.rules[0].ratelimits[0].by[0]",
      message: /no parameter \{ordr\}/,
    },
    {
      name: "a prefix with a parameter",
      manifest: withRule({ match: { path: { prefix: "/orders/{order}" } } }),
      location: "spec.rules[0].match.path.prefix",
      message: /write a template such as/,
    },
    {
      name: "a template with a parameter in a part of a segment",
      manifest: withRule({ match: { path: { template: "/orders/{order}.json" } } }),
      location: "spec.rules[0].match.path.template",
      message: /takes a whole segment/,
    },
    {
      name: "a negative cost",
      manifest: withRule({ credits: { cost: -1 } }),
      location: "spec.rules[0].credits.cost",
      message: />=0/,
    },
    {
      name: "a duration without a unit",
      manifest: withLimit({ duration: "60" }),
      location: "spec.rules[0].ratelimits[0].duration",
      message: /expected a duration such as/,
    },
    {
      name: "a duration under a second",
      manifest: withLimit({ duration: "10ms" }),
      location: "spec.rules[0].ratelimits[0].duration",
      message: /at least 1000 ms/,
    },
    {
      name: "a limit with a name and a namespace",
      manifest: withLimit({ namespace: "n", identifier: "Key" }),
      location: "spec.rules[0].ratelimits[0]",
      message: /exactly one of name and namespace/,
    },
    {
      name: "a limit in a namespace without an identifier",
      manifest: withLimit({ name: undefined, namespace: "n" }),
      location: "spec.rules[0].ratelimits[0]",
      message: /requires `by`, or an `identifier`/,
    },
    {
      name: "two limits on one counter",
      manifest: withRule({ ratelimits: times(2, { name: "a", limit: 1, duration: "1s" }) }),
      location: "spec.rules[0].ratelimits[1]",
      message: /same counter/,
    },
    {
      name: "denying before acting",
      manifest: aPolicy({ onStale: { after: "1m", denyAfter: "30s" } }),
      location: "spec.onStale.denyAfter",
      message: /shorter/,
    },
    {
      name: "forwarded addresses without proxies",
      manifest: aPolicy({ clientAddress: { from: "ForwardedFor" } }),
      location: "spec.clientAddress",
      message: /trustedProxies is required/,
    },
    {
      name: "a proxy that is no address",
      manifest: aPolicy({
        clientAddress: { from: "ForwardedFor", trustedProxies: ["10.0.0.0/8", "::1/64", "10.0.0.0/33"] },
      }),
      location: "spec.clientAddress.trustedProxies[2]",
      message: /CIDR/,
    },
    {
      name: "an unknown path form",
      manifest: aPolicy({ allowPaths: ["Slash"] }),
      location: "spec.allowPaths[0]",
      message: /expected one of/,
    },
    {
      name: "a namespace's name that is none",
      manifest: aPolicy({ allowedNamespaces: ["A"] }),
      location: "spec.allowedNamespaces[0]",
      message: /name of a namespace/,
    },
    {
      name: "a slug with a space",
      manifest: aRole({ permissions: ["orders read"] }),
      location: "spec.permissions[0]",
      message: /expected a permission/,
    },
    {
      name: "1001 permissions",
      manifest: aRole({ permissions: times(1001, "a") }),
      location: "spec.permissions",
      message: /<=1000/,
    },
    {
      name: "a deletion policy that is none",
      manifest: aRole({ deletionPolicy: "Keep" }),
      location: "spec.deletionPolicy",
      message: /Delete.*Orphan/,
    },
    {
      name: "an adoption that is none",
      manifest: aRole({ adopt: true }),
      location: "spec.adopt",
      message: /Match.*Override/,
    },
    {
      name: "an override without its namespace",
      manifest: anOverride({ namespaceRef: undefined }),
      location: "spec.namespaceRef",
      message: /required/,
    },
    {
      name: "an override with a negative limit",
      manifest: anOverride({ limit: -1 }),
      location: "spec.limit",
      message: />=0/,
    },
    {
      name: "an override without an identifier",
      manifest: anOverride({ identifier: "" }),
      location: "spec.identifier",
      message: /Too small/,
    },
    {
      name: "a namespace without a name",
      manifest: aNamespace({ name: undefined }),
      location: "spec.name",
      message: /required/,
    },
  ])("checkManifest reports $name with its location", ({ manifest, location, message }) => {
    const problems = checkManifest(manifest);
    expect(problems).toContainEqual({ location, message: expect.stringMatching(message) });
  });

  test("checkManifest reports all problems of a manifest together", () => {
    const problems = checkManifest(aPolicy({ mode: 1, a: 1, b: 2, rules: [{ c: 1 }, { credits: {} }] }));
    expect(problems.map(({ location }) => location).sort()).toEqual([
      "spec.a",
      "spec.b",
      "spec.mode",
      "spec.rules[0].c",
      "spec.rules[1].credits.cost",
    ]);
  });

  test("checkManifest never throws for any value", () => {
    fc.assert(
      fc.property(
        fc.anything(),
        fc.anything(),
        fc.constantFrom("ApiKeyPolicy", "Role", "RatelimitOverride", "x"),
        (value, spec, kind) => {
          expect(checkManifest(value).length).toBeGreaterThan(0);
          expect(checkManifest(aManifest(kind, spec)).length).toBeGreaterThan(0);
        },
      ),
    );
  });
});

test.each([
  {
    name: "a path",
    at: "spec.rules[0].match.path.prefix",
    manifest: (text: string) => withRule({ match: { path: { prefix: `/${text}` } } }),
  },
  {
    name: "the name of a port",
    at: "spec.target.port",
    manifest: (text: string) => aPolicy({ target: { port: text } }),
  },
  {
    name: "the key of a label",
    at: "spec.selector.matchLabels",
    manifest: (text: string) => aPolicy({ selector: { matchLabels: { [`${text}/a`]: "x" } } }),
  },
  {
    name: "the name of an object",
    at: "metadata.name",
    manifest: (text: string) => ({ ...aRole(), metadata: { name: text } }),
  },
])("checkManifest reports $name of several megabytes as a problem, without a stack overflow", ({ at, manifest }) => {
  for (const part of ["a", "1", "a-", "1-", "a.", "/", "%41"]) {
    const problems = checkManifest(manifest(part.repeat(8_000_000 / part.length)));
    expect(problems.map(({ location }) => location.split('["')[0])).toContain(at);
  }
});
