import { describe, expect, test } from "vitest";
import { findApisixKeys } from "./apisix.ts";
import { DiscoveredKeys } from "./discovered-keys.ts";
import { readDocuments } from "./documents.ts";
import { findEnvoyGatewayKeys } from "./envoy-gateway.ts";
import { findKongKeys } from "./kong.ts";
import { findKuadrantKeys } from "./kuadrant.ts";

/* Rules drafted from the limits and denials in files of other systems. */

function find(
  reader: (documents: readonly unknown[], discovered: DiscoveredKeys, ttl: Parameters<typeof findKongKeys>[2]) => void,
  text: string,
): DiscoveredKeys {
  const discovered = new DiscoveredKeys();
  reader(readDocuments(text, "file"), discovered, { ttlIs: undefined, nowMs: 0 });
  return discovered;
}

const rulesIn = ({ rules }: DiscoveredKeys) => rules.map(({ rule }) => rule);
const perMinute = (by: string[], changes: object = {}) => [
  { name: "minute", by, limit: 60, duration: "1m", ...changes },
];

describe("Kong", () => {
  const route = (plugins: string, more = "") =>
    find(
      findKongKeys,
      `services: [{ name: s, routes: [{ name: r, paths: [/orders]${more}, plugins: [${plugins}] }] }]`,
    );
  const KEYS = "{ name: key-auth }, ";
  const path = { prefix: "/orders" };

  test.each([
    { config: "limit_by: ip", by: ["address"] },
    { config: "limit_by: consumer", by: ["identity"] },
    { config: "policy: local", by: ["identity"] },
    { config: "limit_by: credential", by: ["key"] },
    { config: "limit_by: header, header_name: X-Tenant", by: ["header.X-Tenant"] },
    { config: "limit_by: service", by: ["host"] },
  ])("import drafts a limit by $by from rate-limiting with $config", ({ config, by }) => {
    const discovered = route(`${KEYS}{ name: rate-limiting, config: { minute: 60, ${config} } }`);
    expect(rulesIn(discovered)).toEqual([{ match: { path }, ratelimits: perMinute(by) }]);
    expect(discovered.rules[0]?.from).toBe("route r, rate-limiting");
    expect(discovered.notes).toHaveLength(by[0] === "address" || by[0] === "host" ? 1 : 0);
  });

  test("import drafts a limit by path from rate-limiting, and by address for other paths", () => {
    const discovered = route(`{ name: rate-limiting, config: { minute: 60, limit_by: path, path: /orders/search } }`);
    expect(rulesIn(discovered)).toEqual([
      { match: { path: { exact: "/orders/search" } }, access: "Anonymous", ratelimits: perMinute(["host"]) },
      { match: { path }, access: "Anonymous", ratelimits: perMinute(["address"]) },
    ]);
  });

  test("import counts consumers of a route without keys by address, as Kong does", () => {
    expect(rulesIn(route("{ name: rate-limiting, config: { minute: 60 } }"))).toEqual([
      { match: { path }, access: "Anonymous", ratelimits: perMinute(["address"]) },
    ]);
  });

  test("import reads hosts, methods, headers, templates, windows and the most specific configuration of a plugin", () => {
    const discovered = find(
      findKongKeys,
      `
plugins: [{ name: rate-limiting, config: { minute: 1 } }, { name: rate-limiting, consumer: alice, config: { minute: 2 } }]
services:
- plugins: [{ name: key-auth }, { name: rate-limiting, config: { second: 3, hour: 4, limit_by: ip } }]
  routes:
  - name: a
    paths: ['~/orders/(?<order>[^/]+)/refund$', '~/a.*']
    hosts: ["*.example.com"]
    methods: [POST]
    headers: { X-Version: ["2"] }
  - { name: b, paths: [/b], headers: { X-Version: ["1", "2"] } }
  - { name: c, paths: [/c], plugins: [{ name: rate-limiting, enabled: false }] }
`,
    );
    expect(rulesIn(discovered)).toEqual([
      {
        match: {
          methods: ["POST"],
          hosts: ["*.example.com"],
          headers: [{ name: "X-Version", exact: "2" }],
          path: { template: "/orders/{order}/refund" },
        },
        ratelimits: [
          { name: "second", by: ["address"], limit: 3, duration: "1s" },
          { name: "hour", by: ["address"], limit: 4, duration: "1h" },
        ],
      },
    ]);
    expect(discovered.notes).toEqual([
      "route a, rate-limiting is not imported as a rule: the regular expression ~/a.* is no template",
      "limits by address require spec.clientAddress in the policy",
      "route b, rate-limiting is not imported as a rule: a rule compares a header with one value",
    ]);
  });

  test("import drafts a denial from request-termination, unless it has a trigger", () => {
    const limited = "{ name: rate-limiting, config: { minute: 1 } }";
    expect(rulesIn(route(`${limited}, { name: request-termination, config: { status_code: 403 } }`))).toEqual([
      { match: { path }, access: "Deny" },
    ]);
    const triggered = route("{ name: request-termination, config: { trigger: x-stop } }");
    expect(triggered.rules).toEqual([]);
    expect(triggered.notes).toEqual([expect.stringContaining("trigger")]);
  });

  test.each([
    { config: "limit_by: consumer-group", says: "limit_by consumer-group has no counterpart" },
    { config: "limit_by: header, header_name: 'X Y'", says: "ratelimits.0.by.0" },
  ])("import reports the limit that it cannot write as a rule: $config", ({ config, says }) => {
    const discovered = route(`${KEYS}{ name: rate-limiting, config: { minute: 60, ${config} } }`);
    expect(discovered.rules).toEqual([]);
    expect(discovered.notes).toEqual([expect.stringContaining(says)]);
  });
});

test("import reads the keys of a file whose limits cannot be read", () => {
  const discovered = find(
    findKongKeys,
    "{ routes: [{ hosts: x }], consumers: [{ username: a, keyauth_credentials: [{ key: wJ8xT2fQ7nL4vB9kR6mZ3c }] }] }",
  );
  expect(discovered.keys).toHaveLength(1);
  expect(discovered.notes).toEqual([expect.stringContaining("at routes.0.hosts")]);
});

describe("APISIX", () => {
  const route = (plugins: string, more = "uri: /orders/*") =>
    find(findApisixKeys, `routes: [{ id: r, ${more}, plugins: { ${plugins} } }]\n#END`);
  const limitBy = (by: string[]) => [{ name: "limit-count", by, limit: 5, duration: "60s" }];
  const COUNT = "count: 5, time_window: 60";

  test.each([
    { config: "", by: ["address"] },
    { config: "key_type: var, key: http_x_tenant", by: ["header.x-tenant"] },
    { config: "key_type: var_combination, key: '$remote_addr $consumer_name'", by: ["address", "identity"] },
    { config: "key_type: var_combination, key: '$http_host $request_method'", by: ["host", "method"] },
    { config: "key_type: constant, key: all", by: ["host"] },
  ])("import drafts a limit by $by from limit-count with $config", ({ config, by }) => {
    const discovered = route(`key-auth: {}, limit-count: { ${COUNT}${config === "" ? "" : `, ${config}`} }`);
    expect(rulesIn(discovered)).toEqual([{ match: { path: { prefix: "/orders" } }, ratelimits: limitBy(by) }]);
  });

  test("import reads hosts, methods, parameters and headers of a route", () => {
    const more = `uris: ["/o/:id/x", "/files/*"], host: a.test, methods: [GET], vars: [[http_x_beta, "==", "1"]]`;
    const match = { methods: ["GET"], hosts: ["a.test"], headers: [{ name: "x-beta", exact: "1" }] };
    const rest = { access: "Anonymous", ratelimits: limitBy(["address"]) };
    expect(rulesIn(route(`limit-count: { ${COUNT} }`, more))).toEqual([
      { match: { ...match, path: { template: "/o/{id}/x" } }, ...rest },
      { match: { ...match, path: { prefix: "/files" } }, ...rest },
    ]);
  });

  test("import drafts denials from uri-blocker before the limit of the route", () => {
    const discovered = route(
      `uri-blocker: { block_rules: ["^/internal", "^/debug$", "root.(exe|com)"] }, limit-count: { ${COUNT} }`,
    );
    expect(rulesIn(discovered)).toMatchObject([
      { match: { path: { prefix: "/internal" } }, access: "Deny" },
      { match: { path: { exact: "/debug" } }, access: "Deny" },
      { access: "Anonymous" },
    ]);
    expect(discovered.notes[0]).toBe(
      "route r, uri-blocker root.(exe|com) is not imported as a rule: expected a pattern such as ^/internal or ^/internal$",
    );
  });

  test.each([
    { config: "key: server_addr", more: undefined, says: "server_addr" },
    { config: "key: consumer_name", more: undefined, says: "by address, for example" },
    { config: "key: remote_addr", more: `uri: /a, vars: [[arg_x, "==", "1"]]`, says: "only headers" },
  ])("import reports the limit that it cannot write as a rule: $config $more", ({ config, more, says }) => {
    const discovered = route(`limit-count: { ${COUNT}, ${config} }`, more);
    expect(discovered.rules).toEqual([]);
    expect(discovered.notes).toEqual([expect.stringContaining(says)]);
  });
});

describe("Envoy Gateway", () => {
  const policy = (rules: string) =>
    find(
      findEnvoyGatewayKeys,
      `apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: { name: p, namespace: shop }
spec: { rateLimit: { type: Global, global: { rules: [${rules}] } } }`,
    );
  const limit = "limit: { requests: 10, unit: Hour }";
  const drafted = (match: object | undefined, by: string[]) => ({
    ...(match === undefined ? {} : { match }),
    access: "Anonymous",
    ratelimits: [{ name: "rule-1", by, limit: 10, duration: "1h" }],
  });

  test("import drafts limits from selectors of headers and addresses", () => {
    const headers = "{ name: x-plan, value: free }, { name: x-tenant, type: Distinct }";
    const address = "{ sourceCIDR: { value: 0.0.0.0/0, type: Distinct } }";
    expect(rulesIn(policy(`{ clientSelectors: [{ headers: [${headers}] }, ${address}], ${limit} }`))).toEqual([
      drafted(
        {
          headers: [
            { name: "x-plan", exact: "free" },
            { name: "x-tenant", present: true },
          ],
        },
        ["header.x-tenant"],
      ),
      drafted(undefined, ["address"]),
    ]);
    expect(rulesIn(policy(`{ ${limit} }`))).toEqual([drafted(undefined, ["host"])]);
  });

  test.each([
    { selector: "headers: [{ name: x, type: RegularExpression, value: a.* }]", says: "exact values" },
    { selector: "headers: [{ name: x, value: a, invert: true }]", says: "invert" },
    { selector: "sourceCIDR: { value: 192.0.2.0/24, type: Exact }", says: "only count them" },
    { selector: "sourceCIDR: { value: 10.0.0.0/8, type: Distinct }", says: "only count them" },
    { selector: "queryParams: [{ name: x }]", says: "queryParams" },
  ])("import reports the selector that it cannot write as a rule: $selector", ({ selector, says }) => {
    const discovered = policy(`{ clientSelectors: [{ ${selector} }], ${limit} }`);
    expect(discovered.rules).toEqual([]);
    expect(discovered.notes).toEqual([expect.stringMatching(`^BackendTrafficPolicy shop/p, rule 1 .*${says}`)]);
  });
});

describe("Kuadrant", () => {
  const policy = (limit: string) =>
    find(
      findKuadrantKeys,
      `apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: { name: p, namespace: shop }
spec: { limits: { calls: { rates: [{ limit: 7, window: 10s }], ${limit} } } }`,
    );

  test("import drafts a limit from counters and predicates", () => {
    const when = `request.method == 'POST' && request.path.startsWith('/orders')`;
    const more = `request.headers['x-beta'] == "1"`;
    const counters = ["auth.identity.userid", "request.headers['x-tenant']", "source.address"];
    const discovered = policy(
      `counters: ${JSON.stringify(counters.map((expression) => ({ expression })))}, when: ${JSON.stringify([{ predicate: when }, { predicate: more }])}`,
    );
    expect(rulesIn(discovered)).toEqual([
      {
        match: { methods: ["POST"], path: { prefix: "/orders" }, headers: [{ name: "x-beta", exact: "1" }] },
        ratelimits: [{ name: "calls", by: ["identity", "header.x-tenant", "address"], limit: 7, duration: "10s" }],
      },
    ]);
  });

  test("import drafts a limit by host from a limit without counters, and keeps its conditions on host and path", () => {
    const when = `when: [{ predicate: "request.host == 'a.test'" }, { predicate: "request.path == '/x'" }]`;
    expect(rulesIn(policy(when))).toEqual([
      {
        match: { hosts: ["a.test"], path: { exact: "/x" } },
        access: "Anonymous",
        ratelimits: [{ name: "calls", by: ["host"], limit: 7, duration: "10s" }],
      },
    ]);
  });

  test.each([
    { limit: `counters: [{ expression: auth.identity.plan }]`, says: "the counter auth.identity.plan" },
    { limit: `when: [{ predicate: "request.method == 'A' || request.method == 'B'" }]`, says: "the predicate" },
    { limit: `when: [{ predicate: "request.path == '/a'" }, { predicate: "request.path == '/b'" }]`, says: "'/b'" },
    { limit: `when: [{ predicate: "request.method == 'LOCK'" }]`, says: "match.methods" },
  ])("import reports the limit that it cannot write as a rule: $limit", ({ limit, says }) => {
    const discovered = policy(limit);
    expect(discovered.rules).toEqual([]);
    expect(discovered.notes).toEqual([expect.stringContaining(says)]);
  });
});

test.each([
  { reader: findKongKeys, kind: "KongPlugin", says: "deck gateway dump" },
  { reader: findKongKeys, kind: "KongClusterPlugin", says: "deck gateway dump" },
  { reader: findApisixKeys, kind: "ApisixRoute", says: "apisix.yaml" },
  { reader: findApisixKeys, kind: "PluginConfig", says: "apisix.yaml" },
  { reader: findKuadrantKeys, kind: "PlanPolicy", says: "namespaces and overrides" },
])("import reports the object whose limits it does not read: $kind", ({ reader, kind, says }) => {
  const discovered = find(
    reader,
    `{ apiVersion: v1, kind: ${kind}, metadata: { name: p, namespace: shop }, spec: {} }`,
  );
  expect([discovered.keys, discovered.rules]).toEqual([[], []]);
  expect(discovered.notes).toEqual([expect.stringMatching(`^${kind} shop/p is not imported as a rule: .*${says}`)]);
});

test.each([
  { form: "list", text: (route: string) => `{ total: 1, list: [${route}] }` },
  { form: "object", text: (route: string) => route },
])("import names the route with plugins in a response of APISIX' Admin API: $form", ({ text }) => {
  const route = `{ key: /apisix/routes/1, value: { uri: /orders, plugins: { limit-count: { count: 1 } } } }`;
  const discovered = find(findApisixKeys, text(route));
  expect([discovered.keys, discovered.left]).toEqual([[], []]);
  expect(discovered.notes).toEqual([
    expect.stringMatching("^/apisix/routes/1 is not imported as a rule: import apisix.yaml"),
  ]);
  expect(find(findApisixKeys, text("{ key: /apisix/upstreams/1, value: { nodes: {} } }")).notes).toEqual([]);
});
