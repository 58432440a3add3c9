import { describe, expect, test } from "vitest";
import { clientFacts, demandText, otherRequestsText, requestsText, ruleText, stateOf } from "./policy-words.ts";

const MINUTE_MS = 60_000;

describe("rule in words", () => {
  test.each([
    { rule: {}, text: "any method any path" },
    { rule: { methods: ["GET", "HEAD"], path: { prefix: "/orders" } }, text: "GET, HEAD /orders/…" },
    { rule: { path: { template: "/orders/{order}/refund" } }, text: "any method /orders/{order}/refund" },
    {
      rule: {
        methods: ["GET"],
        path: { exact: "/a" },
        hosts: ["api.example.com", "*.example.org"],
        headers: [{ name: "X-Api-Version", exact: "2" }, { name: "X-Beta" }],
      },
      text: "GET /a at api.example.com or *.example.org with X-Api-Version: 2 and any X-Beta",
    },
    { rule: { methods: 7, path: null, hosts: "x", headers: [null] }, text: "any method any path with any undefined" },
  ])("requests of a rule are described as: $text", ({ rule, text }) => expect(requestsText(rule)).toBe(text));

  const limit = { limit: 60, durationMs: MINUTE_MS };
  test.each([
    { rule: { access: "Key", creditCost: 1 }, text: "a valid key" },
    { rule: { access: "Deny", ratelimits: [] }, text: "denied with 403" },
    { rule: { access: "Anonymous", ratelimits: [] }, text: "admitted without a key" },
    {
      rule: { access: "Anonymous", ratelimits: [{ ...limit, by: ["address"] }] },
      text: "admitted without a key, at most 60 per 1 min for each address",
    },
    {
      rule: {
        access: "Key",
        permissions: "refunds.write",
        creditCost: 2,
        ratelimits: [
          { ...limit, by: ["key", "path.order", "header.X-Tenant"] },
          { ...limit, identifier: "identity" },
        ],
      },
      text: "a key with refunds.write, 2 credits, at most 60 per 1 min for each key, {order} and header X-Tenant, at most 60 per 1 min for each identity",
    },
  ])("requirement of a rule is described as: $text", ({ rule, text }) => expect(demandText(rule)).toBe(text));

  test.each([
    { rule: -2, name: undefined, text: "rejected path" },
    { rule: -1, name: undefined, text: "no rule matches" },
    { rule: 0, name: undefined, text: "rule 1" },
    { rule: 1, name: "refund", text: "rule 2 (refund)" },
  ])("rejections: $text", ({ rule, name, text }) => expect(ruleText(rule, name)).toBe(text));
});

test.each([
  [undefined, "a valid key"],
  ["Key", "a valid key"],
  ["Anonymous", "admitted without a key"],
  ["Deny", "denied with 403"],
])("access for requests that match no rule, with defaultAccess %s, is described as: %s", (defaultAccess, text) =>
  expect(otherRequestsText({ defaultAccess })).toBe(text),
);

test.each([
  { policy: undefined, facts: [] },
  {
    policy: { clientAddress: { from: "connection" } },
    facts: [["Client address", "the connection; IPv6 counted by /64"]],
  },
  {
    policy: {
      failedAttempts: { limit: 20, durationMs: MINUTE_MS },
      clientAddress: { from: "forwardedFor", trustedProxies: [], ipv6PrefixBits: 56 },
    },
    facts: [
      ["Failed attempts", "at most 20 per 1 min for each address, then 429"],
      ["Client address", "X-Forwarded-For; IPv6 counted by /56"],
    ],
  },
])("facts about the clients of a policy are described as: $facts", ({ policy, facts }) =>
  expect(clientFacts(policy)).toEqual(facts),
);

describe("state of the pods of a policy", () => {
  const all = { pods: 2, silent: 0, updated: 2, behind: 0, unsupported: 0, stale: 0, expired: 0 };
  test.each([
    { dataPlane: undefined, word: "unknown" },
    { dataPlane: { ...all, pods: 0, updated: 0 }, word: "no pods" },
    { dataPlane: all, word: "in effect" },
    { dataPlane: { ...all, silent: 1 }, word: "silent" },
    { dataPlane: { ...all, pods: 0, updated: 0, silent: 1 }, word: "silent" },
    { dataPlane: { ...all, silent: 1, expired: 1 }, word: "stale, denied" },
    { dataPlane: { ...all, silent: 1, behind: 1 }, word: "silent" },
    { dataPlane: { ...all, behind: 1, stale: 1 }, word: "behind" },
  ])("worst state of a policy's pods is $word", ({ dataPlane, word }) => expect(stateOf(dataPlane).word).toBe(word));
});
