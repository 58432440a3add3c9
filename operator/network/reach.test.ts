import { expect, test } from "vitest";
import { allowAllExcept } from "./all-but.ts";
import type { NetworkPolicy, NetworkPolicySpec } from "./network-policy.ts";
import { admitting, isolating, matches } from "./reach.ts";

const policy = (spec: Partial<NetworkPolicySpec>): NetworkPolicy => ({
  namespace: "shop",
  name: "one",
  uid: "uid-1",
  controllerUid: undefined,
  isOrphaned: false,
  spec: { podSelector: {}, policyTypes: ["Ingress"], ...spec },
});
const ports = [
  { name: "web", number: 8080 },
  { name: "metrics", number: 9090 },
];

test.each([
  { name: "one that selects all pods", of: {}, is: true },
  { name: "one that leaves the types out", of: { policyTypes: undefined }, is: true },
  { name: "one for what pods send", of: { policyTypes: ["Egress"] }, is: false },
  { name: "one for other pods", of: { podSelector: { matchLabels: { app: "billing" } } }, is: false },
])("pod is isolated by NetworkPolicy $name: $is", ({ of, is }) => {
  expect(isolating([policy(of as Partial<NetworkPolicySpec>)], { app: "orders" })).toHaveLength(is ? 1 : 0);
});

test.each<{ name: string; ingress: NetworkPolicySpec["ingress"]; is: boolean }>([
  { name: "no rule", ingress: undefined, is: false },
  { name: "an empty list of rules", ingress: [], is: false },
  { name: "a rule without ports, whoever sends", ingress: [{ from: [{ podSelector: {} }] }], is: true },
  { name: "the port's number", ingress: [{ ports: [{ port: 8080 }] }], is: true },
  { name: "another number", ingress: [{ ports: [{ port: 8081 }, { port: 19_080 }] }], is: false },
  { name: "the number for UDP", ingress: [{ ports: [{ protocol: "UDP", port: 8080 }] }], is: false },
  { name: "all of TCP", ingress: [{ ports: [{ protocol: "TCP" }] }], is: true },
  { name: "a range around it", ingress: [{ ports: [{ port: 8000, endPort: 8080 }] }], is: true },
  { name: "a range below it", ingress: [{ ports: [{ port: 8000, endPort: 8079 }] }], is: false },
  { name: "the name of the port", ingress: [{ ports: [{ port: "web" }] }], is: true },
  { name: "another port's name", ingress: [{ ports: [{ port: "metrics" }] }], is: false },
  { name: "it in the second rule", ingress: [{ ports: [{ port: 1 }] }, { ports: [{ port: 8080 }] }], is: true },
])("NetworkPolicy with $name admits traffic: $is", ({ ingress, is }) => {
  const one = policy(ingress === undefined ? {} : { ingress });
  expect(admitting([one], { ports }, 8080)).toHaveLength(is ? 1 : 0);
});

test.each([
  { operator: "In", values: ["a", "b"], is: [true, false, false] },
  { operator: "NotIn", values: ["a", "b"], is: [false, true, true] },
  { operator: "Exists", values: undefined, is: [true, true, false] },
  { operator: "DoesNotExist", values: undefined, is: [false, false, true] },
])("label selector expression with $operator", ({ operator, values, is }) => {
  const selector = { matchExpressions: [{ key: "tier", operator, ...(values === undefined ? {} : { values }) }] };
  expect(
    [{ tier: "a" }, { tier: "c" }, {}].map((labels) => matches(selector, labels as Record<string, string>)),
  ).toEqual(is);
});

test.each([
  { closed: [8080], listed: [] },
  { closed: [1], listed: [] },
  { closed: [65_535], listed: [65_535, 80] },
  { closed: [9090, 8080, 8081, 8080], listed: [19_080, 8080, 19_081] },
])("NetworkPolicy that allows all ports except $closed closes exactly those ports", ({ closed, listed }) => {
  const spec = allowAllExcept({ matchLabels: { l: "v" } }, { closed, listed });
  const isOpen = (port: number) => admitting([policy(spec)], { ports: [] }, port).length > 0;
  for (let port = 1; port <= 65_535; port++) {
    if (isOpen(port) === closed.includes(port)) throw new Error(`${port} is the other way round`);
  }
  const single = spec.ingress?.[0]?.ports?.flatMap(({ port, protocol }) => (protocol === "TCP" ? [port] : [])) ?? [];
  for (const port of listed.filter((one) => !closed.includes(one))) expect(single).toContain(port);
  for (const port of closed) expect(single).not.toContain(port);
  expect(spec.podSelector).toEqual({ matchLabels: { l: "v" } });
});
