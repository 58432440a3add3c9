import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { findApisixKeys } from "./apisix.ts";
import { DiscoveredKeys } from "./discovered-keys.ts";
import { readDocuments, readText } from "./documents.ts";
import { findEnvoyGatewayKeys } from "./envoy-gateway.ts";
import { findKongKeys } from "./kong.ts";
import { findKuadrantKeys } from "./kuadrant.ts";
import { findUnkeyKeys } from "./unkey.ts";

/* Reads files of other systems in their own formats. */

const dir = mkdtempSync(join(tmpdir(), "postern-import-"));
afterAll(() => rmSync(dir, { recursive: true }));

type Ttl = Parameters<typeof findKongKeys>[2];
const nowMs = 1_800_000_000_000;

function find(
  reader: (documents: readonly unknown[], discovered: DiscoveredKeys, ttl: Ttl) => void,
  text: string,
  ttlIs?: Ttl["ttlIs"],
): DiscoveredKeys {
  const file = join(dir, "file");
  writeFileSync(file, text);
  const discovered = new DiscoveredKeys();
  reader(readDocuments(readText(file), file), discovered, { ttlIs, nowMs });
  return discovered;
}

/** Returns each key as one line: position, secret, and settings. */
const shown = ({ keys }: DiscoveredKeys) => keys.map(({ from, secret, hash, key }) => [from, secret ?? hash, key]);
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const KEY = "wJ8xT2fQ7nL4vB9kR6mZ3c";

test("Kong import reads keys inside of consumers and in separate lists, with groups, tags and expiry", () => {
  const discovered = find(
    findKongKeys,
    `
_format_version: "3.0"
services: [{ name: orders, url: http://orders }]
consumers:
- username: alice
  custom_id: "42"
  tags: [gold-customers]
  acls: [{ group: gold }, { group: beta }]
  groups: [{ name: gold }]
  keyauth_credentials:
  - key: ${KEY}1
  - { key: ${KEY}2, created_at: 1900000000, ttl: 3600 }
  basicauth_credentials: [{ username: alice, password: x }]
  plugins: [{ name: rate-limiting, config: { minute: 5 } }]
- username: bob
  keyauth_credentials: []
- custom_id: "7"
  id: 5f1b0c9e
keyauth_credentials:
- { consumer: bob, key: 0123 }
- { consumer: { id: 5f1b0c9e }, key: ${KEY}4 }
acls: [{ consumer: bob, group: silver }]
`,
    "total",
  );
  const alice = {
    enabled: true,
    name: "alice",
    externalId: "42",
    roles: ["gold", "beta"],
    meta: { tags: ["gold-customers"] },
  };
  expect(shown(discovered)).toEqual([
    ["consumer alice, key 1", `${KEY}1`, alice],
    ["consumer alice, key 2", `${KEY}2`, { ...alice, expires: 1_900_003_600_000 }],
    // The key stays text, not a number.
    ["consumer bob, key 1", "0123", { enabled: true, name: "bob", externalId: "bob", roles: ["silver"] }],
    ["consumer 7, key 1", `${KEY}4`, { enabled: true, externalId: "7" }],
  ]);
  expect(discovered.short).toBe(1);
  expect(discovered.left).toEqual([
    { from: "consumer alice, basic-auth", why: "a credential of this kind is not an API key" },
  ]);
  expect(discovered.notes).toEqual([expect.stringContaining("rate-limiting of consumers is not imported")]);
});

test("Kong import does not assign keys to a consumer whose name is another consumer's id", () => {
  const discovered = find(
    findKongKeys,
    `{ "consumers": [{ "id": "a", "username": "b" }, { "id": "c", "username": "a2" }], "keyauth_credentials": [
      { "consumer": { "id": "c" }, "key": "${KEY}" }, { "consumer": { "username": "c" }, "key": "${KEY}x" }] }`,
  );
  expect(shown(discovered)).toEqual([["consumer a2, key 1", KEY, { enabled: true, name: "a2", externalId: "a2" }]]);
});

test("Kong import reads the Secrets that a KongConsumer in the same namespace references", () => {
  const secret = (namespace: string, name: string, kind: string, data: object) =>
    JSON.stringify({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace, labels: { "konghq.com/credential": kind } },
      data,
    });
  const consumer = JSON.stringify({
    apiVersion: "configuration.konghq.com/v1",
    kind: "KongConsumer",
    metadata: { name: "alice", namespace: "shop" },
    username: "alice",
    credentials: ["key", "group", "jwt", "gone"],
    consumerGroups: ["beta"],
  });
  const discovered = find(
    findKongKeys,
    `{"apiVersion":"v1","kind":"List","items":[${[
      secret("other", "key", "key-auth", { key: base64("of another namespace") }),
      secret("shop", "key", "key-auth", { key: base64(KEY) }),
      secret("shop", "group", "acl", { group: base64("gold") }),
      secret("shop", "jwt", "jwt", { key: base64("x") }),
      consumer,
    ].join(",")}]}`,
  );
  expect(shown(discovered)).toEqual([
    ["consumer alice, Secret key", KEY, { enabled: true, name: "alice", externalId: "alice", roles: ["gold", "beta"] }],
  ]);
  expect(discovered.left.map(({ from }) => from)).toEqual([
    "consumer alice, Secret jwt",
    "consumer alice, Secret gone",
  ]);
});

describe("a ttl of Kong", () => {
  const file = `consumers:
- username: a
  keyauth_credentials:
  - { key: ${KEY}1, ttl: 60 }
  - { key: ${KEY}2, ttl: 60, created_at: 1700000000 }
  - { key: ${KEY}3, ttl: 0, created_at: 1700000000 }
  - { key: ${KEY}4, ttl: soon, created_at: 1700000000 }
  - { key: ${KEY}5, ttl: -5 }
  - { key: ${KEY}6 }
`;
  const expiries = ({ keys }: DiscoveredKeys) => keys.map(({ from, key }) => [from, key.expires]);
  const left = (discovered: DiscoveredKeys) => discovered.left.map(({ from, why }) => `${from}: ${why}`);

  test("Kong import without --ttl-is skips only keys with a ttl", () => {
    const discovered = find(findKongKeys, file);
    expect(expiries(discovered)).toEqual([
      ["consumer a, key 3", undefined],
      ["consumer a, key 6", undefined],
    ]);
    expect(left(discovered)).toEqual(
      [1, 2, 4, 5].map((key) =>
        expect.stringMatching(`^consumer a, key ${key}: its ttl of \\S+ s may be .* --ttl-is remaining\\|total$`),
      ),
    );
  });

  test("Kong import adds a remaining ttl to the current time, whenever the key was created", () => {
    const discovered = find(findKongKeys, file, "remaining");
    expect(expiries(discovered).slice(0, 2)).toEqual([
      ["consumer a, key 1", nowMs + 60_000],
      ["consumer a, key 2", nowMs + 60_000],
    ]);
    expect(left(discovered)).toEqual([
      'consumer a, key 4: its ttl "soon" is not a number of seconds',
      'consumer a, key 5: its ttl "-5" is not a number of seconds',
    ]);
  });

  test("Kong import adds a total (not remaining) ttl to created_at, and reports keys without created_at", () => {
    const discovered = find(findKongKeys, file, "total");
    expect(expiries(discovered)[0]).toEqual(["consumer a, key 2", 1_700_000_060_000]);
    expect(left(discovered)[0]).toMatch(/^consumer a, key 1: its ttl of 60 s counts from created_at/);
  });

  test("Kong import reads a ttl in a Secret as in a file", () => {
    const objects = `{"apiVersion":"v1","kind":"List","items":[
      {"apiVersion":"v1","kind":"Secret","metadata":{"name":"key","namespace":"shop","labels":{"konghq.com/credential":"key-auth"}},
       "data":{"key":"${base64(KEY)}","ttl":"${base64("60")}"}},
      {"apiVersion":"configuration.konghq.com/v1","kind":"KongConsumer","metadata":{"name":"a","namespace":"shop"},"username":"a","credentials":["key"]}]}`;
    expect(left(find(findKongKeys, objects))).toEqual([expect.stringContaining("--ttl-is")]);
    expect(expiries(find(findKongKeys, objects, "remaining"))).toEqual([["consumer a, Secret key", nowMs + 60_000]]);
  });
});

test("APISIX import reads standalone files with other plugins", () => {
  const discovered = find(
    findApisixKeys,
    `
consumers:
  - username: jack
    group_id: gold
    labels: { team: shop }
    plugins:
      key-auth: { key: ${KEY} }
      limit-count: { count: 1 }
      basic-auth: { username: a }
  - username: rose
    credentials:
      - { name: first, type: key-auth, config: { key: ${KEY}2 } }
      - { name: second, type: jwt-auth, config: { key: x } }
#END
`,
  );
  expect(shown(discovered)).toEqual([
    [
      "consumer jack",
      KEY,
      { enabled: true, name: "jack", externalId: "jack", roles: ["gold"], meta: { labels: { team: "shop" } } },
    ],
    ["consumer rose, credential first", `${KEY}2`, { enabled: true, name: "rose", externalId: "rose" }],
  ]);
  expect(discovered.left.map(({ from }) => from)).toEqual([
    "consumer jack, basic-auth",
    "consumer rose, credential second",
  ]);
  expect(discovered.notes).toEqual([expect.stringContaining("limit-count of consumers")]);
});

test("APISIX import reads Admin API responses in any order, one per line", () => {
  const kept = (key: string, value: object) => JSON.stringify({ total: 1, list: [{ key: `/apisix/${key}`, value }] });
  const discovered = find(
    findApisixKeys,
    [
      kept("consumers/jack/credentials/one", { id: "one", plugins: { "key-auth": { key: KEY } } }),
      kept("consumers/rose/credentials/two", { id: "two", plugins: { "key-auth": { key: "$env://ROSE" } } }),
      kept("consumers/jack", { username: "jack", group_id: "gold", plugins: {} }),
    ].join("\n"),
  );
  expect(shown(discovered)).toEqual([
    ["consumer jack, credential one", KEY, { enabled: true, name: "jack", externalId: "jack", roles: ["gold"] }],
  ]);
  expect(discovered.left).toEqual([
    { from: "consumer rose, credential two", why: expect.stringContaining("its value is a reference") },
  ]);
});

test("APISIX import reads consumers of its ingress controller, with keys inline or in a Secret", () => {
  const discovered = find(
    findApisixKeys,
    `
apiVersion: apisix.apache.org/v2
kind: ApisixConsumer
metadata: { name: jack, namespace: shop }
spec: { authParameter: { keyAuth: { value: { key: ${KEY} } } } }
---
apiVersion: apisix.apache.org/v1alpha1
kind: Consumer
metadata: { name: rose, namespace: shop }
spec: { credentials: [{ type: key-auth, name: one, secretRef: { name: rose } }, { type: key-auth, name: two, secretRef: { name: gone } }] }
---
apiVersion: v1
kind: Secret
metadata: { name: rose, namespace: shop }
stringData: { key: ${KEY}2 }
`,
  );
  expect(shown(discovered)).toEqual([
    ["ApisixConsumer shop/jack", KEY, { enabled: true, name: "jack", externalId: "jack" }],
    ["Consumer shop/rose, credential one", `${KEY}2`, { enabled: true, name: "rose", externalId: "rose" }],
  ]);
  expect(discovered.left).toEqual([
    { from: "Consumer shop/rose, credential two", why: "the file does not contain the Secret gone" },
  ]);
});

test("Kuadrant import reads Secrets with Authorino's label, with groups and plans", () => {
  const secret = (name: string, metadata: object, data: object) =>
    JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace: "shop", ...metadata }, data });
  const labels = { "authorino.kuadrant.io/managed-by": "authorino" };
  const discovered = find(
    findKuadrantKeys,
    `[${[
      secret(
        "alice",
        {
          labels,
          annotations: {
            "secret.kuadrant.io/user-id": "42",
            "kuadrant.io/groups": "gold, beta,",
            "secret.kuadrant.io/plan-id": "big",
          },
        },
        { api_key: base64(KEY) },
      ),
      secret("tls", {}, { api_key: base64("x") }),
      secret("empty", { labels }, {}),
      secret("line", { labels }, { api_key: base64(`${KEY}\n`) }),
    ].join(",")}]`,
  );
  expect(shown(discovered)).toEqual([
    [
      "Secret shop/alice",
      KEY,
      { enabled: true, name: "alice", externalId: "42", roles: ["gold", "beta"], meta: { plan: "big" } },
    ],
  ]);
  expect(discovered.left.map(({ from, why }) => [from, why.slice(0, 24)])).toEqual([
    ["Secret shop/tls", "it lacks the label autho"],
    ["Secret shop/empty", "the file does not contai"],
    ["Secret shop/line", "it contains a character "],
  ]);
});

test("Envoy Gateway import reads the Secrets of a SecurityPolicy, or all without one", () => {
  const secret = (name: string, data: object) => `
---
apiVersion: v1
kind: Secret
metadata: { name: ${name}, namespace: shop }
data: ${JSON.stringify(data)}
`;
  const secrets =
    secret("clients", { first: base64(KEY), second: base64(`${KEY}2`) }) + secret("tls", { "tls.key": base64("x") });
  const policy = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: { name: keys, namespace: shop }
spec: { apiKeyAuth: { credentialRefs: [{ name: clients }, { name: gone }], extractFrom: [{ headers: [x-api-key] }] } }
`;
  const discovered = find(findEnvoyGatewayKeys, policy + secrets);
  expect(shown(discovered)).toEqual([
    ["Secret shop/clients, client first", KEY, { enabled: true, name: "first", externalId: "first" }],
    ["Secret shop/clients, client second", `${KEY}2`, { enabled: true, name: "second", externalId: "second" }],
  ]);
  expect(discovered.left).toEqual([
    { from: "Secret shop/gone", why: expect.stringContaining("the file does not contain this Secret") },
  ]);
  expect(find(findEnvoyGatewayKeys, secrets).keys).toHaveLength(3);
});

test("Unkey import reads pages of v2 and v1, by plaintext or hash", () => {
  const hash = "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=";
  const v2 = {
    meta: { requestId: "req_1" },
    data: [
      {
        keyId: "key_1",
        plaintext: KEY,
        name: "Billing",
        identity: { id: "id_1", externalId: "acme" },
        meta: { plan: "pro" },
        enabled: false,
        expires: 1_900_000_000_000,
        credits: { remaining: 5, refill: { interval: "monthly", amount: 9, refillDay: 3, lastRefillAt: 1 } },
        roles: ["admin"],
        permissions: ["orders.read"],
        ratelimits: [{ id: "rl_1", name: "requests", limit: 5, duration: 60_000, autoApply: true }],
      },
      { keyId: "key_2", start: "sk_1234" },
      { keyId: "key_3", hash: "no hash" },
    ],
  };
  const v1 = { keys: [{ id: "key_4", hash, ownerId: "acme", remaining: 3, ratelimit: { limit: 1 } }], total: 1 };
  const discovered = find(findUnkeyKeys, `${JSON.stringify(v2)}\n${JSON.stringify(v1)}\n`);
  expect(shown(discovered)).toEqual([
    [
      "key key_1",
      KEY,
      {
        enabled: false,
        name: "Billing",
        externalId: "acme",
        meta: { plan: "pro" },
        expires: 1_900_000_000_000,
        credits: { remaining: 5, refill: { interval: "monthly", amount: 9, refillDay: 3 } },
        roles: ["admin"],
        permissions: ["orders.read"],
        ratelimits: [{ name: "requests", limit: 5, duration: 60_000, autoApply: true }],
      },
    ],
    ["key key_4", hash, { enabled: true, externalId: "acme", credits: { remaining: 3 } }],
  ]);
  expect(discovered.left.map(({ from }) => from)).toEqual(["key key_2", "key key_3"]);
  expect(discovered.notes).toHaveLength(1);
});

test("import takes a duplicate key only once, for its first owner, and reports the duplicate", () => {
  const discovered = find(
    findKongKeys,
    `consumers: [{ username: a, keyauth_credentials: [{ key: ${KEY} }] }, { username: b, keyauth_credentials: [{ key: ${KEY} }] }]`,
  );
  expect(discovered.keys.map(({ from }) => from)).toEqual(["consumer a, key 1"]);
  expect(discovered.left).toEqual([{ from: "consumer b, key 1", why: expect.stringContaining("consumer a, key 1") }]);
});

test.each([
  { name: "YAML that is none", text: "consumers: [", says: /file:\d+: / },
  { name: "a list where an object belongs", text: "consumers: { username: a }", says: "at consumers" },
  { name: "text that is no UTF-8", text: Buffer.from([0x63, 0xff, 0xfe]), says: "is not UTF-8 text" },
  {
    name: "aliases that grow without end",
    text: `a: &a [x, x, x, x, x, x, x, x, x, x]\n${"bcdefghi"
      .split("")
      .map((name, i) => `${name}: &${name} [${Array(10).fill(`*${"abcdefgh"[i]}`).join(", ")}]`)
      .join("\n")}`,
    says: "alias",
  },
  { name: "a text alone", text: "hello", says: "cannot be read" },
])("key import rejects $name and names its location", ({ text, says }) => {
  expect(() => find(findKongKeys, text as string)).toThrow(says);
});
