import { API_VERSION } from "../../core/manifests/index.ts";

/*
 * Manifests at the edges of what is allowed. Each bad one is refused by the Kubernetes API server and by `postern validate`, each
 * good one is accepted by both. One list for both, so that they cannot drift apart.
 */

type Fields = Readonly<Record<string, unknown>>;

export interface TriedManifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly [field: string]: unknown };
  readonly spec: unknown;
}

export interface BadManifest {
  readonly name: string;
  readonly manifest: TriedManifest;
  /** The field, as `kubectl apply` names it; of a rule over several fields, what they have in common. */
  readonly field: string;
  /** What the message of the Kubernetes API server says. */
  readonly says: RegExp;
  /** The location that `postern validate` reports, when it is more exact than `field`. */
  readonly location?: string;
}

export const aManifest = (kind: string, spec: unknown, metadata: Fields = {}): TriedManifest => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name: "it", ...metadata },
  spec,
});
export const aPolicy = (spec: Fields = {}): TriedManifest =>
  aManifest("ApiKeyPolicy", { api: { name: "orders" }, target: { port: "http" }, ...spec });
const withPort = (port: unknown) => aPolicy({ target: { port } });
const withLabels = (matchLabels: Fields) => aPolicy({ selector: { matchLabels } });
const withRule = (rule: Fields) => aPolicy({ rules: [{}, rule] });
const withPath = (prefix: string, spec: Fields = {}) =>
  aPolicy({ ...spec, rules: [{}, { match: { path: { prefix } } }] });
const withExact = (exact: string) => aPolicy({ rules: [{}, { match: { path: { exact } } }] });
const withLimits = (...ratelimits: Fields[]) => withRule({ ratelimits });
const withRules = (...rules: Fields[]) => aPolicy({ rules });
const withProxies = (...trustedProxies: string[]) =>
  aPolicy({ clientAddress: { from: "ForwardedFor", trustedProxies } });
const aRole = (spec: Fields = {}): TriedManifest => aManifest("Role", { name: "editor", ...spec });
const aNamespace = (spec: Fields = {}): TriedManifest => aManifest("RatelimitNamespace", { name: "public", ...spec });
const anOverride = (spec: Fields = {}): TriedManifest =>
  aManifest("RatelimitOverride", {
    namespaceRef: { name: "public" },
    identifier: "acme",
    limit: 1,
    duration: "1m",
    ...spec,
  });

const aKey = (spec: Fields = {}): TriedManifest =>
  aManifest("ApiKey", { policyRef: { name: "orders" }, secretRef: { name: "orders-key" }, ...spec });

const THIRTY_TWO_LABELS = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`label-${i}`, "x"]));
/** One character, two UTF-16 code units. */
const KEY = "🗝";

export const BAD_MANIFESTS: readonly BadManifest[] = [
  ...["Never", 5, ["Local"], {}, { budget: "PerPod" }, { action: "Local", budget: "PerPod", more: true }].map(
    (onCounterFailure) => ({
      name: `onCounterFailure ${JSON.stringify(onCounterFailure)}`,
      manifest: aPolicy({ onCounterFailure }),
      field: "spec.onCounterFailure",
      says: /supported values|must be/i,
    }),
  ),
  ...[
    { action: "Deny", budget: "PerPod" },
    { action: "Local", budget: "2/pods" },
  ].map((onCounterFailure) => ({
    name: `onCounterFailure ${JSON.stringify(onCounterFailure)}`,
    manifest: aPolicy({ onCounterFailure }),
    field: "spec.onCounterFailure",
    says: /supported values/i,
    location: "spec.onCounterFailure.budget",
  })),
  {
    name: "a key for two APIs",
    manifest: aKey({ apiRef: { id: "api_12345678" } }),
    field: "spec",
    says: /exactly one of policyRef and apiRef/,
  },
  {
    name: "a key that is replaced before its overlap is over",
    manifest: aKey({ rotation: { every: "1h" } }),
    field: "spec.rotation",
    says: /`every` must be longer than `overlap`/,
  },
  {
    name: "a key that is replaced all the time",
    manifest: aKey({ rotation: { every: "59s", overlap: "1s" } }),
    field: "spec.rotation.every",
    says: /at least 60000 ms/,
  },
  {
    name: "a key that ends on a day that there is not",
    manifest: aKey({ expires: "2027-02-30T00:00:00Z" }),
    field: "spec.expires",
    says: /expected a time/,
  },
  {
    name: "a key that ends after some time, and not at a time",
    manifest: aKey({ expires: "720h" }),
    field: "spec.expires",
    says: /should match/,
  },
  {
    name: "a key in a Secret's data that would be another folder",
    manifest: aKey({ secretRef: { name: "orders-key", key: ".." } }),
    field: "spec.secretRef.key",
    says: /should match/,
  },
  {
    name: "two limits of a key with one name",
    manifest: aKey({
      ratelimits: [
        { name: "requests", limit: 1, duration: "1m" },
        { name: "requests", limit: 1, duration: "1h" },
      ],
    }),
    field: "spec.ratelimits",
    says: /two limits have the same name/,
    location: "spec.ratelimits[1]",
  },
  {
    name: "a monthly refill without its day",
    manifest: aKey({ credits: { remaining: 1, refill: { interval: "Monthly", amount: 1 } } }),
    field: "spec.credits.refill",
    says: /refillDay is required with Monthly/,
  },
  { name: "port 0", manifest: withPort(0), field: "spec.target.port", says: /greater than or equal to 1/ },
  { name: "port 99999", manifest: withPort(99_999), field: "spec.target.port", says: /less than or equal to 65535/ },
  { name: "a port as a text of digits", manifest: withPort("8080"), field: "spec.target.port", says: /should match/ },
  { name: "a port's name in capitals", manifest: withPort("HTTP"), field: "spec.target.port", says: /should match/ },
  {
    name: "a port's name with two hyphens",
    manifest: withPort("a--b"),
    field: "spec.target.port",
    says: /should match/,
  },
  {
    name: "an unknown protocol",
    manifest: aPolicy({ target: { port: 80, protocol: "http3" } }),
    field: "spec.target.protocol",
    says: /supported values: "http1", "h2c"/,
  },
  {
    name: "a parameter in a prefix",
    manifest: withRules({ match: { path: { prefix: "/orders/{order}" } } }),
    field: "spec.rules[0].match.path.prefix",
    says: /should match/,
  },
  {
    name: "a parameter in a part of a segment",
    manifest: withRules({ match: { path: { template: "/orders/{order}.json" } } }),
    field: "spec.rules[0].match.path.template",
    says: /should match/,
  },
  {
    name: "a rest before the last segment",
    manifest: withRules({ match: { path: { template: "/{path...}/end" } } }),
    field: "spec.rules[0].match.path.template",
    says: /should match/,
  },
  {
    name: "a template and a prefix",
    manifest: withRules({ match: { path: { template: "/{a}", prefix: "/a" } } }),
    field: "spec.rules[0].match.path",
    says: /exactly one of prefix, exact and template/,
  },
  {
    name: "a host with a port",
    manifest: withRules({ match: { hosts: ["api.example.com:443"] } }),
    field: "spec.rules[0].match.hosts[0]",
    says: /should match/,
  },
  {
    name: "a header without a condition",
    manifest: withRules({ match: { headers: [{ name: "X-A" }] } }),
    field: "spec.rules[0].match.headers[0]",
    says: /exactly one of exact and present/,
  },
  {
    name: "Host as a header",
    manifest: withRules({ match: { headers: [{ name: "HOST", present: true }] } }),
    field: "spec.rules[0].match.headers[0]",
    says: /use `hosts` to match the Host header/,
  },
  {
    name: "two rules of one name",
    manifest: withRules({ name: "a" }, {}, { name: "a" }),
    field: "spec.rules",
    says: /two rules have the same name/,
    location: "spec.rules[2].name",
  },
  {
    name: "a Deny rule with a limit",
    manifest: withRules({ access: "Deny", ratelimits: [{ name: "a", by: ["host"], limit: 1, duration: "1m" }] }),
    field: "spec.rules[0]",
    says: /a rule with access Deny cannot have rate limits/,
  },
  {
    name: "an Anonymous rule with a limit by identity",
    manifest: withRules({
      access: "Anonymous",
      ratelimits: [{ name: "a", by: ["host", "identity"], limit: 1, duration: "1m" }],
    }),
    field: "spec.rules[0]",
    says: /requires `by` without key and identity/,
    location: "spec.rules[0].ratelimits[0]",
  },
  {
    name: "identifier beside by",
    manifest: withLimits({ name: "a", identifier: "Key", by: ["host"], limit: 1, duration: "1m" }),
    field: "spec.rules[1].ratelimits[0]",
    says: /set only one of `identifier` and `by`/,
  },
  {
    name: "a limit by an unknown value",
    manifest: withLimits({ name: "a", by: ["cookie.a"], limit: 1, duration: "1m" }),
    field: "spec.rules[1].ratelimits[0].by[0]",
    says: /should match/,
  },
  {
    name: "a limit by a parameter without a template",
    manifest: withLimits({ name: "a", by: ["key", "path.order"], limit: 1, duration: "1m" }),
    field: "spec.rules[1]",
    says: /requires match.path.template/,
    location: "spec.rules[1].ratelimits[0].by[1]",
  },
  {
    name: "a limit by address without clientAddress",
    manifest: withLimits({ name: "a", by: ["key", "address"], limit: 1, duration: "1m" }),
    field: "spec",
    says: /require clientAddress/,
    location: "spec.rules[1].ratelimits[0].by[1]",
  },
  {
    name: "failedAttempts without clientAddress",
    manifest: aPolicy({ failedAttempts: { limit: 20, duration: "60s" } }),
    field: "spec",
    says: /require clientAddress/,
    location: "spec.failedAttempts",
  },
  {
    name: "two limits by the same values",
    manifest: withLimits(
      { name: "a", by: ["host", "method"], limit: 1, duration: "1m" },
      { name: "a", by: ["host", "method"], limit: 2, duration: "60s" },
    ),
    field: "spec.rules[1].ratelimits",
    says: /two limits have the same counter/,
    location: "spec.rules[1].ratelimits[1]",
  },
  {
    name: "identifier and by that name the same counter",
    manifest: withLimits(
      { name: "a", by: ["identity"], limit: 1, duration: "1m" },
      { name: "a", identifier: "Identity", limit: 2, duration: "60s" },
    ),
    field: "spec.rules[1].ratelimits",
    says: /two limits have the same counter/,
    location: "spec.rules[1].ratelimits[1]",
  },
  {
    name: "an IPv6 prefix of 129 bits",
    manifest: aPolicy({ clientAddress: { from: "Connection", ipv6PrefixBits: 129 } }),
    field: "spec.clientAddress.ipv6PrefixBits",
    says: /less than or equal to 128/,
  },
  {
    name: "denying before acting",
    manifest: aPolicy({ onStale: { after: "10m", denyAfter: "1m" } }),
    field: "spec.onStale",
    says: /`denyAfter` must not be shorter than `after`/,
    location: "spec.onStale.denyAfter",
  },
  {
    name: "denying before acting, in two notations",
    manifest: aPolicy({ onStale: { after: 120_000, denyAfter: "1m59s" } }),
    field: "spec.onStale",
    says: /`denyAfter` must not be shorter than `after`/,
    location: "spec.onStale.denyAfter",
  },
  {
    name: "acting after the default of denying",
    manifest: aPolicy({ onStale: { after: "1h" } }),
    field: "spec.onStale",
    says: /`denyAfter` must not be shorter than `after`/,
    location: "spec.onStale.denyAfter",
  },
  {
    name: "a duration that no clock can hold",
    manifest: aPolicy({ onStale: { after: "99999999999h" } }),
    field: "spec.onStale.after",
    says: /Duration.* must be at least 1000 ms, and at most 876000h/,
  },
  {
    name: "milliseconds that no clock can hold",
    manifest: anOverride({ duration: 9_007_199_254_740_991 }),
    field: "spec.duration",
    says: /must be at least 1000 ms, and at most 876000h/,
  },
  {
    name: "two limits of one name",
    manifest: withLimits({ name: "writes", limit: 1, duration: "1m" }, { name: "writes", limit: 9, duration: "1m" }),
    field: "spec.rules[1].ratelimits",
    says: /two limits have the same counter/,
    location: "spec.rules[1].ratelimits[1]",
  },
  {
    name: "two limits of one name, whose durations are spelt differently",
    manifest: withLimits(
      { name: "writes", limit: 1, duration: "1m" },
      { name: "reads", limit: 1, duration: "1m" },
      { name: "writes", limit: 1, duration: 60_000, identifier: "Key" },
    ),
    field: "spec.rules[1].ratelimits",
    says: /two limits have the same counter/,
    location: "spec.rules[1].ratelimits[2]",
  },
  {
    name: "two limits in one namespace",
    manifest: withLimits(
      { namespace: "n", identifier: "Identity", limit: 1, duration: "1m" },
      { namespace: "n", identifier: "Identity", limit: 2, duration: "60s" },
    ),
    field: "spec.rules[1].ratelimits",
    says: /two limits have the same counter/,
    location: "spec.rules[1].ratelimits[1]",
  },
  {
    name: "a limit with a name and a namespace",
    manifest: withLimits({ name: "n", namespace: "n", identifier: "Key", limit: 1, duration: "1m" }),
    field: "spec.rules[1].ratelimits[0]",
    says: /exactly one of name and namespace/,
  },
  {
    name: "a limit in a namespace without an identifier",
    manifest: withLimits({ namespace: "n", limit: 1, duration: "1m" }),
    field: "spec.rules[1].ratelimits[0]",
    says: /requires `by`, or an `identifier`/,
  },
  {
    name: "an empty selector",
    manifest: withLabels({}),
    field: "spec.selector.matchLabels",
    says: /should have at least 1 properties/,
  },
  {
    name: "33 labels",
    manifest: withLabels({ ...THIRTY_TWO_LABELS, more: "x" }),
    field: "spec.selector.matchLabels",
    says: /must have at most 32/,
  },
  {
    name: "a label's key with a blank",
    manifest: withLabels({ "my app": "x" }),
    field: "spec.selector.matchLabels",
    says: /the key of a label has/,
    location: 'spec.selector.matchLabels["my app"]',
  },
  {
    name: "a label's key with an empty prefix",
    manifest: withLabels({ "/app": "x" }),
    field: "spec.selector.matchLabels",
    says: /the key of a label has/,
    location: 'spec.selector.matchLabels["/app"]',
  },
  {
    name: "a label's key with two slashes",
    manifest: withLabels({ "a/b/c": "x" }),
    field: "spec.selector.matchLabels",
    says: /the key of a label has/,
    location: 'spec.selector.matchLabels["a/b/c"]',
  },
  {
    name: "a label's key of 64 characters",
    manifest: withLabels({ ["k".repeat(64)]: "x" }),
    field: "spec.selector.matchLabels",
    says: /the key of a label has/,
    location: `spec.selector.matchLabels.${"k".repeat(64)}`,
  },
  {
    name: "a label's key whose prefix has 254 characters",
    manifest: withLabels({ [`${"p".repeat(254)}/app`]: "x" }),
    field: "spec.selector.matchLabels",
    says: /the key of a label has/,
    location: `spec.selector.matchLabels["${"p".repeat(64)}…"]`,
  },
  {
    name: "a label's value with a blank",
    manifest: withLabels({ app: "my app" }),
    field: "spec.selector.matchLabels.app",
    says: /should match/,
  },
  {
    name: "a label's value that ends with a hyphen",
    manifest: withLabels({ app: "orders-" }),
    field: "spec.selector.matchLabels.app",
    says: /should match/,
  },
  {
    name: "a label's value of 64 characters",
    manifest: withLabels({ app: "v".repeat(64) }),
    field: "spec.selector.matchLabels.app",
    says: /63/,
  },
  {
    name: "a blank name of an API",
    manifest: aPolicy({ api: { name: "   " } }),
    field: "spec.api.name",
    says: /should match/,
  },
  {
    name: "a name of an API of other white space",
    manifest: aPolicy({ api: { name: "\u00a0\u2003\u3000" } }),
    field: "spec.api.name",
    says: /should match/,
  },
  {
    name: "a name of an API of two characters",
    manifest: aPolicy({ api: { name: `${KEY}${KEY}` } }),
    field: "spec.api.name",
    says: /at least 3 chars/,
  },
  {
    name: "a proxy by its name",
    manifest: withProxies("10.0.0.0/8", "proxy.internal"),
    field: "spec.clientAddress.trustedProxies[1]",
    says: /an IP address or a CIDR block/,
  },
  {
    name: "a proxy with too many bits",
    manifest: withProxies("10.0.0.0/33"),
    field: "spec.clientAddress.trustedProxies[0]",
    says: /an IP address or a CIDR block/,
  },
  {
    name: "a proxy with a port",
    manifest: withProxies("10.0.0.1:443"),
    field: "spec.clientAddress.trustedProxies[0]",
    says: /an IP address or a CIDR block/,
  },
  {
    name: "a proxy of three numbers",
    manifest: withProxies("10.0.1"),
    field: "spec.clientAddress.trustedProxies[0]",
    says: /an IP address or a CIDR block/,
  },
  {
    name: "a proxy with a leading zero",
    manifest: withProxies("10.0.0.01"),
    field: "spec.clientAddress.trustedProxies[0]",
    says: /an IP address or a CIDR block/,
  },
  {
    name: "a credential twice",
    manifest: aPolicy({
      credentials: [{ header: { name: "X-Key" } }, { query: { name: "key" } }, { header: { name: "x-key" } }],
    }),
    field: "spec.credentials",
    says: /two locations are the same/,
    location: "spec.credentials[2]",
  },
  {
    name: "a path with a query",
    manifest: withPath("/a?b"),
    field: "spec.rules[1].match.path.prefix",
    says: /should match/,
  },
  {
    name: "a path with a blank",
    manifest: withExact("/a b"),
    field: "spec.rules[1].match.path.exact",
    says: /should match/,
  },
  {
    name: "a path with a percent sign that encodes nothing",
    manifest: withExact("/100%"),
    field: "spec.rules[1].match.path.exact",
    says: /should match/,
  },
  {
    name: "a path with an encoded zero byte",
    manifest: withExact("/a%00"),
    field: "spec.rules[1].match.path.exact",
    says: /should match/,
  },
  {
    name: "a path with an empty segment",
    manifest: withPath("/a//b"),
    field: "spec.rules",
    says: /has an empty segment/,
    location: "spec.rules[1].match.path.prefix",
  },
  {
    name: "a path with a dot segment",
    manifest: withExact("/a/../b"),
    field: "spec.rules",
    says: /has a dot segment/,
    location: "spec.rules[1].match.path.exact",
  },
  {
    name: "a path with an encoded dot segment",
    manifest: withExact("/a/%2e%2E"),
    field: "spec.rules",
    says: /has a dot segment/,
    location: "spec.rules[1].match.path.exact",
  },
  {
    name: "a path with an encoded slash",
    manifest: withExact("/a%2fb"),
    field: "spec.rules",
    says: /has an encoded slash/,
    location: "spec.rules[1].match.path.exact",
  },
  {
    name: "a path with an encoded backslash",
    manifest: withExact("/a%5cb"),
    field: "spec.rules",
    says: /has a backslash/,
    location: "spec.rules[1].match.path.exact",
  },
  ...["/orders/*/refund", "/orders/{id}", "/orders/id}", "/*"].map((path) => ({
    name: `a path with a wildcard or parameter: ${path}`,
    manifest: withPath(path),
    field: "spec.rules[1].match.path.prefix",
    says: /should match/,
  })),
  ...["/a%FF", "/a%c3", "/a%C0%AF", "/a%ED%A0%80", "/a%f4%90%80%80", "/a%C3\u0080"].map((path) => ({
    name: `a path that is not UTF-8: ${JSON.stringify(path)}`,
    manifest: withExact(path),
    field: "spec.rules[1].match.path.exact",
    says: /should match/,
  })),
  ...["/a%0A", "/a%09b", "/a%7f", "/a%c2%85", "/a%E2%80%A8", "/a\u0085", "/a\u2029"].map((path) => ({
    name: `a path with a control character: ${JSON.stringify(path)}`,
    manifest: withExact(path),
    field: "spec.rules",
    says: /has an encoded control character/,
    location: "spec.rules[1].match.path.exact",
  })),
  {
    name: "a method twice",
    manifest: withRule({ match: { methods: ["GET", "GET"] } }),
    field: "spec.rules[1].match.methods[1]",
    says: /Duplicate value/,
  },
  {
    name: "a form of paths twice",
    manifest: aPolicy({ allowPaths: ["Semicolon", "Semicolon"] }),
    field: "spec.allowPaths[1]",
    says: /Duplicate value/,
  },
  {
    name: "a namespace twice",
    manifest: aNamespace({ allowedNamespaces: ["lab", "lab"] }),
    field: "spec.allowedNamespaces[1]",
    says: /Duplicate value/,
  },
  {
    name: "a permission twice",
    manifest: aRole({ permissions: ["a", "b", "a"] }),
    field: "spec.permissions[2]",
    says: /Duplicate value/,
  },
  { name: "a blank name of a role", manifest: aRole({ name: " \t" }), field: "spec.name", says: /should match/ },
  {
    name: "a blank name of a rate-limit namespace",
    manifest: aNamespace({ name: " " }),
    field: "spec.name",
    says: /should match/,
  },
  {
    name: "a text that is too long in characters",
    manifest: aRole({ description: KEY.repeat(513) }),
    field: "spec.description",
    says: /512/,
  },
  {
    name: "a label of the object itself",
    manifest: aManifest("Role", { name: "editor" }, { labels: { "a b": "x" } }),
    field: "metadata.labels",
    says: /Invalid value: "a b"/,
    location: 'metadata.labels["a b"]',
  },
  {
    name: "an annotation of the object itself",
    manifest: aManifest("Role", { name: "editor" }, { annotations: { "a b": "x" } }),
    field: "metadata.annotations",
    says: /Invalid value: "a b"/,
    location: 'metadata.annotations["a b"]',
  },
];

export const GOOD_MANIFESTS: ReadonlyArray<{ readonly name: string; readonly manifest: TriedManifest }> = [
  { name: "the least that a key needs", manifest: aKey() },
  {
    name: "a key with all of its fields",
    manifest: aKey({
      policyRef: undefined,
      apiRef: { id: "api_12345678" },
      owner: "acme-1_2.3",
      name: "Billing 🗝",
      roles: ["editor"],
      permissions: ["orders.read"],
      ratelimits: [{ name: "requests", limit: 1, duration: "1m", autoApply: true }],
      credits: { remaining: 0, refill: { interval: "Daily", amount: 1 } },
      expires: "2028-02-29T23:59:59.999+14:00",
      secretRef: { name: "orders-key", key: ".env" },
      rotation: { every: "1m", overlap: 0 },
    }),
  },
  { name: "the least that a policy needs", manifest: aPolicy() },
  ...[
    "Deny",
    { action: "Local" },
    { action: "Deny" },
    { action: "Allow" },
    { action: "Local", budget: "PerPod" },
    { budget: "PerPod", action: "Local" },
  ].map((onCounterFailure) => ({
    name: `onCounterFailure ${JSON.stringify(onCounterFailure)}`,
    manifest: aPolicy({ onCounterFailure }),
  })),
  {
    name: "every field of the second edition of rules",
    manifest: aPolicy({
      target: { port: "http", protocol: "h2c" },
      clientAddress: { from: "Connection", ipv6PrefixBits: 56 },
      defaultAccess: "Deny",
      failedAttempts: { limit: 20, duration: "60s" },
      rules: [
        {
          name: "refund",
          match: {
            methods: ["POST"],
            path: { template: "/orders/{order}/{rest...}" },
            hosts: ["api.example.com", "*.eu.example.com"],
            headers: [
              { name: "X-Api-Version", exact: "2" },
              { name: "X-Beta", present: true },
            ],
          },
          ratelimits: [
            { name: "refunds", by: ["key", "path.order", "path.rest", "address"], limit: 10, duration: "60s" },
            { namespace: "public-api", by: ["header.X-Tenant", "host"], limit: 10, duration: "60s" },
          ],
        },
        {
          access: "Anonymous",
          match: { path: { prefix: "/catalogue" } },
          ratelimits: [{ name: "guests", by: ["address", "method"], limit: 60, duration: "60s", async: true }],
        },
        { name: "internal", access: "Deny", match: { path: { exact: "/internal" } } },
      ],
    }),
  },
  { name: "port 1", manifest: withPort(1) },
  { name: "port 65535", manifest: withPort(65_535) },
  { name: "a port's name with digits first", manifest: withPort("8080-http-2") },
  { name: "the longest name of a port", manifest: withPort("abcdefghijklmno") },
  { name: "acting and denying at the same time", manifest: aPolicy({ onStale: { after: "15m" } }) },
  {
    name: "acting and denying at the same time, in two notations",
    manifest: aPolicy({ onStale: { after: 60_000, denyAfter: "1m" } }),
  },
  { name: "the longest duration", manifest: anOverride({ duration: "876000h" }) },
  { name: "the longest duration in milliseconds", manifest: anOverride({ duration: 3_153_600_000_000 }) },
  { name: "a duration in many parts", manifest: anOverride({ duration: "1h1h0m500ms500ms" }) },
  {
    name: "one name for two lengths of a window",
    manifest: withLimits({ name: "writes", limit: 1, duration: "1m" }, { name: "writes", limit: 9, duration: "1h" }),
  },
  {
    name: "one name for keys and identities",
    manifest: withLimits(
      { name: "writes", limit: 1, duration: "1m" },
      { name: "writes", limit: 9, duration: "1m", identifier: "Identity" },
    ),
  },
  {
    name: "one text as a name and as a namespace",
    manifest: withLimits(
      { name: "n", limit: 1, duration: "1m" },
      { namespace: "n", identifier: "Key", limit: 9, duration: "1m" },
    ),
  },
  { name: "32 labels", manifest: withLabels(THIRTY_TWO_LABELS) },
  { name: "the longest label", manifest: withLabels({ [`${"p".repeat(253)}/${"k".repeat(63)}`]: "v".repeat(63) }) },
  {
    name: "labels of all forms",
    manifest: withLabels({ "app.kubernetes.io/name": "", "A_b.C-9": "A_b.C-9", "1/2": "3" }),
  },
  { name: "a name of an API of three characters", manifest: aPolicy({ api: { name: KEY.repeat(3) } }) },
  { name: "the longest name of an API", manifest: aPolicy({ api: { name: KEY.repeat(256) } }) },
  { name: "a name of an API with white space around it", manifest: aPolicy({ api: { name: " a " } }) },
  {
    name: "proxies of all forms",
    manifest: withProxies(
      "10.0.0.1",
      "10.0.0.0/8",
      "10.0.0.1/08",
      "::1",
      "FE80::1%eth0/64",
      "::ffff:10.0.0.1",
      "::FFFF:a00:1/128",
      "0:0:0:0:0:ffff:10.0.0.1/96",
      "0.0.0.0/0",
      "::/0",
    ),
  },
  {
    name: "two schemes of one header",
    manifest: aPolicy({
      credentials: [
        { header: { name: "Authorization" } },
        { header: { name: "authorization", scheme: "Bearer" } },
        { query: { name: "authorization" } },
        { query: { name: "Authorization" } },
      ],
    }),
  },
  {
    name: "paths that are allowed",
    manifest: withPath("/a//b/../c%2f%5c\\d", {
      allowPaths: ["DoubleSlash", "DotSegments", "EncodedSlash", "Backslash"],
    }),
  },
  {
    name: "a control character in a path that is allowed",
    manifest: withPath("/a%0A%C2%85", { allowPaths: ["ControlCharacters", "InvalidUtf8", "NearMatch", "Suffix"] }),
  },
  { name: "special characters of a path, encoded", manifest: withExact("/%2A/%7Bid%7D/@me:purge!$&'()+,=[]^|\"`<>") },
  {
    name: "characters of every length in UTF-8, encoded",
    manifest: withExact("/%C2%A0%DF%BF%E0%A0%80%ed%9f%bf%EE%80%80%EF%BF%BF%F0%90%80%80%f4%8f%bf%bf%E2%80%AA"),
  },
  { name: "paths with dots that are no dot segments", manifest: withExact("/.well-known/a..b/...;v=1/%41%C3%A4/ä🗝") },
  { name: "a path with a semicolon", manifest: withPath("/a;b") },
  { name: "the longest text in characters", manifest: aRole({ description: KEY.repeat(512), name: KEY.repeat(128) }) },
  {
    name: "labels of the object itself",
    manifest: aManifest(
      "Role",
      { name: "editor" },
      { labels: { "app.kubernetes.io/name": "x", a: "" }, annotations: { "Example.com/a": "any text" } },
    ),
  },
];
