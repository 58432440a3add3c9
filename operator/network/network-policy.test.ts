import { expect, test } from "vitest";
import {
  allowAllExcept,
  closes,
  isolating,
  matches,
  type NetworkPolicy,
  type NetworkPolicySpec,
} from "./network-policy.ts";

const policy = (spec: Partial<NetworkPolicySpec>): NetworkPolicy => ({
  namespace: "shop",
  name: "one",
  uid: "uid-1",
  controllerUid: undefined,
  isOrphaned: false,
  spec: { podSelector: {}, policyTypes: ["Ingress"], ...spec },
});

test.each([
  { name: "one that selects all pods", of: {}, is: true },
  { name: "one that leaves the types out", of: { policyTypes: undefined }, is: true },
  { name: "one for what pods send", of: { policyTypes: ["Egress"] }, is: false },
  { name: "one for other pods", of: { podSelector: { matchLabels: { app: "billing" } } }, is: false },
])("isolation of a pod by a NetworkPolicy is $is: $name", ({ of, is }) => {
  expect(isolating([policy(of as Partial<NetworkPolicySpec>)], { app: "orders" })).toHaveLength(is ? 1 : 0);
});

test.each<{ name: string; ingress: NetworkPolicySpec["ingress"]; is: boolean }>([
  { name: "no rule", ingress: undefined, is: true },
  { name: "a rule without ports", ingress: [{}], is: false },
  { name: "a range around it", ingress: [{ ports: [{ port: 8000, endPort: 8080 }] }], is: false },
  {
    name: "a range below it, and UDP",
    ingress: [{ ports: [{ port: 8000, endPort: 8079 }, { protocol: "UDP" }] }],
    is: true,
  },
  { name: "a named port", ingress: [{ ports: [{ port: "web" }] }], is: false },
  {
    name: "all of TCP in the second rule",
    ingress: [{ ports: [{ port: 1 }] }, { ports: [{ protocol: "TCP" }] }],
    is: false,
  },
])("edited NetworkPolicy with $name closes the app port ($is)", ({ ingress, is }) => {
  expect(closes({ podSelector: {}, ...(ingress === undefined ? {} : { ingress }) }, 8080)).toBe(is);
});

test.each([
  { operator: "In", values: ["a", "b"], is: [true, false, false] },
  { operator: "NotIn", values: ["a", "b"], is: [false, true, true] },
  { operator: "Exists", values: undefined, is: [true, true, false] },
  { operator: "DoesNotExist", values: undefined, is: [false, false, true] },
])("label selector expression with $operator matches the expected labels", ({ operator, values, is }) => {
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
  const ranges = spec.ingress?.[0]?.ports?.filter(({ protocol }) => protocol === "TCP") ?? [];
  const isOpen = (one: number) =>
    ranges.some(({ port, endPort = port }) => Number(port) <= one && one <= Number(endPort));
  expect([closed.every((one) => closes(spec, one)), closes(spec, 1_234)]).toEqual([true, false]);
  for (let port = 1; port <= 65_535; port++) {
    if (isOpen(port) === closed.includes(port)) throw new Error(`${port} is the other way round`);
  }
  const single = ranges.map(({ port }) => port);
  for (const port of listed.filter((one) => !closed.includes(one))) expect(single).toContain(port);
  for (const port of closed) expect(single).not.toContain(port);
  expect(spec.podSelector).toEqual({ matchLabels: { l: "v" } });
});
