import { describe, expect, test } from "vitest";
import type { PodSummary } from "../../pods/pod.ts";
import { anObject } from "../../test/builders.ts";
import { aGate } from "../../test/seen-pods.ts";
import { selectorOf } from "./choose-policy.ts";
import { enforced, toDataPlaneStatus } from "./enforced.ts";
import { mayShare, namedBy, selectedBy } from "./selection.ts";

const policy = (matchLabels: unknown, metadata: Parameters<typeof anObject>[2] = {}) =>
  anObject("ApiKeyPolicy", { selector: { matchLabels } }, metadata);
const pod = (name: string, more: Partial<PodSummary> = {}): PodSummary => ({
  namespace: "shop",
  name,
  uid: `uid-of-${name}`,
  labels: { app: "orders" },
  isRunning: true,
  hasEnded: false,
  gate: aGate,
  policy: "it",
  ...more,
});

test("policy selection counts running pods by gate, label and policy", () => {
  const pods = [
    pod("b-bare", { gate: undefined, policy: undefined }),
    pod("a-of-another", { policy: "former" }),
    pod("by-hand", { policy: undefined, labels: { app: "orders", "postern.dev/guarded": "true" } }),
    pod("injected"),
    pod("ending", { isRunning: false, gate: undefined }),
    pod("other", { labels: {}, gate: undefined, policy: undefined }),
  ];
  expect(selectedBy(policy({ app: "orders" }), pods, [])).toMatchObject({
    guarded: 2,
    unguarded: ["a-of-another", "b-bare"],
    unlabelled: 3,
    contested: 0,
    competitor: undefined,
  });
});

describe("a pod that two policies select", () => {
  const own = policy({ app: "orders" }, { creationTimestamp: "2026-01-02T00:00:00Z" });
  const older = policy({ tier: "x" }, { name: "older", creationTimestamp: "2026-01-01T00:00:00Z" });
  const younger = policy({ tier: "x" }, { name: "younger", creationTimestamp: "2026-01-03T00:00:00Z" });
  const shared = pod("shared", { labels: { app: "orders", tier: "x" }, gate: undefined, policy: undefined });

  test("pod selected by two policies counts for the one that its annotation names", () => {
    expect(selectedBy(own, [{ ...shared, gate: aGate, policy: "it" }], [own, older])).toMatchObject({
      guarded: 1,
      contested: 0,
    });
  });

  test("pod counts for the policy that it names, even if the policy's selector does not match", () => {
    const named = pod("named", { labels: { app: "other" } });
    expect(selectedBy(own, [named], [own, older])).toMatchObject({ guarded: 1, unguarded: [] });
  });

  test("older policy counts a pod as unguarded if the pod's annotation names a younger policy", () => {
    const named = pod("named", { policy: "younger" });
    expect(selectedBy(own, [named], [own, younger])).toMatchObject({ unguarded: ["named"], contested: 0 });
  });

  test("pod selected by two policies counts only for the older one", () => {
    expect(selectedBy(own, [shared, pod("mine")], [own, older])).toMatchObject({
      guarded: 1,
      unguarded: [],
      contested: 1,
      competitor: older,
    });
    expect(selectedBy(own, [shared], [own, younger])).toMatchObject({ unguarded: ["shared"], contested: 0 });
  });

  test("pod stops counting for a deleted policy or one of another namespace", () => {
    const deleted = { ...older, metadata: { ...older.metadata, deletionTimestamp: "2026-02-01T00:00:00Z" } };
    const elsewhere = { ...older, metadata: { ...older.metadata, namespace: "bank" } };
    for (const other of [deleted, elsewhere])
      expect(selectedBy(own, [shared], [own, other])).toMatchObject({ contested: 0 });
  });

  test("two policies can overlap unless they require different values of one label", () => {
    expect(mayShare(own, older)).toBe(true);
    expect(mayShare(own, policy({ app: "billing", tier: "x" }))).toBe(false);
    expect(mayShare(own, policy({}))).toBe(false);
    expect(selectorOf(policy(undefined))).toBeUndefined();
  });
});

test.each([
  { name: "the number that the gate forwards to", port: 8080, outdated: false },
  { name: "another number", port: 9090, outdated: true },
  { name: "the name that the gate took over", port: "http", outdated: false },
  { name: "the name of another port", port: "metrics", outdated: true },
  { name: "a name that the pod does not have", port: "grpc", outdated: true },
])("pod is outdated ($outdated) when the policy port is $name", ({ port, outdated }) => {
  const one = anObject("ApiKeyPolicy", { selector: { matchLabels: { app: "orders" } }, target: { port } });
  const pods = [pod("a"), pod("unknown", { gate: { ...aGate, guards: undefined } })];
  expect(selectedBy(one, pods, []).outdated).toEqual(outdated ? ["a"] : []);
  // A manually started gate needs no named port.
  const byHand = pod("by-hand", { policy: undefined, gate: { ...aGate, ports: [] } });
  expect(selectedBy(one, [byHand], []).outdated).toEqual(port === 9090 ? ["by-hand"] : []);
});

test.each([
  { protocol: undefined, gate: "http1", outdated: [] },
  { protocol: "http1", gate: "http1", outdated: [] },
  { protocol: "h2c", gate: "http1", outdated: ["a"] },
  { protocol: undefined, gate: "h2c", outdated: ["a"] },
  { protocol: "h2c", gate: "h2c", outdated: [] },
] as const)(
  "pods $outdated are outdated when the policy names $protocol and the gate uses $gate",
  ({ protocol, gate, outdated }) => {
    const target = { port: 8080, ...(protocol === undefined ? {} : { protocol }) };
    const one = anObject("ApiKeyPolicy", { selector: { matchLabels: { app: "orders" } }, target });
    const pods = [pod("a"), pod("by-hand", { policy: undefined })].map((of) => ({
      ...of,
      gate: { ...aGate, protocol: gate },
    }));
    expect(selectedBy(one, pods, []).outdated).toEqual(outdated);
  },
);

test("policy without a selector counts the gates injected for it", () => {
  const pods = [
    pod("b"),
    pod("a"),
    pod("other", { policy: "x" }),
    pod("bare", { gate: undefined }),
    pod("hand", { policy: undefined }),
  ];
  expect(namedBy(anObject("ApiKeyPolicy", {}), [...pods, pod("ending", { isRunning: false })])).toEqual([
    "shop/a",
    "shop/b",
  ]);
});

describe("Enforced", () => {
  const reports = { pods: 2, updated: 2, maxStalenessMs: 1 };
  const selected = {
    own: [],
    gated: [],
    labelled: [],
    expected: ["shop/a", "shop/b"],
    guarded: 2,
    outdated: [],
    unguarded: [],
    unlabelled: 0,
    isNamespaceGuarded: undefined,
    contested: 0,
    competitor: undefined,
  };

  test.each([
    { name: "every pod has a gate that reported", of: {}, status: "True", reason: "Succeeded" },
    { name: "a pod has none", of: { unguarded: ["x"] }, status: "False", reason: "UnguardedPods" },
    { name: "a gate has not reported", of: { guarded: 3 }, status: "False", reason: "Progressing" },
    { name: "pods lack the label", of: { unlabelled: 2 }, status: "True", reason: "Succeeded" },
  ])("Enforced condition is $status when $name", ({ of, status, reason }) => {
    expect(enforced(reports, { selected: { ...selected, ...of } })).toMatchObject({ status, reason });
  });

  test.each([
    { name: "both report", podIds: ["shop/a", "shop/b"], status: "True", says: "All 2" },
    {
      name: "a pod that is gone has reported, and not one that runs",
      podIds: ["shop/a", "shop/gone"],
      status: "False",
      says: "1 of the 2 running pods with a gate have reported; not b.",
    },
    { name: "another pod reports too", podIds: ["shop/a", "shop/b", "shop/gone"], status: "True", says: "All 3" },
    { name: "another namespace's pods report", podIds: ["bank/a", "bank/b"], status: "False", says: "0 of the 2" },
  ])("Enforced condition matches reports by pod name: $status when $name", ({ podIds, status, says }) => {
    const dataPlane = { pods: podIds.length, updated: podIds.length, maxStalenessMs: 1, podIds };
    const condition = enforced(dataPlane, { selected });
    expect(condition.status).toBe(status);
    expect(condition.message).toContain(says);
  });

  describe("a gate that has stopped reporting", () => {
    const heard = new Map([
      ["shop/a", Date.parse("2026-03-01T10:00:00Z")],
      ["shop/b", Date.parse("2026-03-01T10:05:00Z")],
    ]);
    const one = { pods: 1, updated: 1, maxStalenessMs: 1, podIds: ["shop/b"] };

    test("Enforced condition names gates that stopped reporting, and when, even while another gate is updating", () => {
      const condition = enforced({ ...one, updated: 0 }, { selected, heard });
      expect(condition).toMatchObject({ status: "False", reason: "PodsSilent" });
      expect(condition.message).toContain(
        "1 of the 2 running pods no longer report: a (last report at 2026-03-01T10:00:00.000Z).",
      );
      expect(toDataPlaneStatus(one, { selected, heard })).toMatchObject({ silent: 1 });
    });

    test("Enforced condition names a gate that stopped reporting even if no other gate reports", () => {
      const none = { pods: 0, updated: 0, maxStalenessMs: 0 };
      expect(enforced(none, { selected, heard })).toMatchObject({ reason: "PodsSilent" });
      expect(enforced(none, { selected })).toMatchObject({ reason: "NoPods" });
      expect(toDataPlaneStatus(none, { selected })).toMatchObject({ silent: 2 });
    });

    test("Enforced condition of a policy without a selector finds silent gates by the annotation of their pods", () => {
      const named = ["shop/a", "shop/b"];
      expect(enforced(one, { selected: undefined, named, heard })).toMatchObject({ reason: "PodsSilent" });
      expect(
        enforced({ ...one, pods: 2, updated: 2, podIds: named }, { selected: undefined, named, heard }),
      ).toMatchObject({
        status: "True",
      });
    });

    test("Enforced condition ignores missing reports of deleted pods", () => {
      const gone = new Map([...heard, ["shop/gone", 1]]);
      const both = { pods: 2, updated: 2, maxStalenessMs: 1, podIds: ["shop/a", "shop/b"] };
      expect(enforced(both, { selected, heard: gone })).toMatchObject({ status: "True" });
    });
  });

  test("Enforced is False with PodsOutdated when gates guard another port", () => {
    const old = enforced(reports, { selected: { ...selected, outdated: ["a", "b"] } });
    expect(old).toMatchObject({ status: "False", reason: "PodsOutdated" });
    expect(old.message).toContain(
      "The gates of 2 of the 2 running pods forward to another port or by another protocol than the changed spec.target: a, b.",
    );
    const object = anObject("ApiKeyPolicy", { target: { port: 9090 } });
    const upstreamPorts = [
      { port: 8080, pods: 1 },
      { port: 9090, pods: 1 },
    ];
    expect(enforced({ ...reports, upstreamPorts }, { object })).toMatchObject({ reason: "PodsOutdated" });
    // Reports without pod names, with a name, and from pods that report themselves.
    expect(enforced(reports, { object })).toMatchObject({ status: "True" });
    expect(
      enforced({ ...reports, upstreamPorts }, { object: anObject("ApiKeyPolicy", { target: { port: "http" } }) }),
    ).toMatchObject({
      status: "True",
    });
    expect(enforced({ ...reports, upstreamPorts }, { object, selected })).toMatchObject({ status: "True" });
  });

  test("Enforced condition counts reports of manually started gates and names only a few pods without a report", () => {
    const dataPlane = { pods: 1, updated: 1, maxStalenessMs: 1, podIds: ["orders-host"] };
    expect(enforced(dataPlane, { selected: { ...selected, guarded: 1, expected: [] } })).toMatchObject({
      status: "True",
    });
    expect(enforced(dataPlane, { selected: { ...selected, guarded: 3, expected: ["shop/a"] } }).message).toBe(
      "1 of the 3 running pods with a gate have reported; not a and others.",
    );
    const expected = Array.from({ length: 50 }, (_, i) => `shop/pod-${i}`);
    expect(enforced(dataPlane, { selected: { ...selected, guarded: 50, expected } }).message).toMatch(
      /pod-4 and others\.$/,
    );
  });

  test.each([
    { isNamespaceGuarded: undefined, says: "Unless their Namespace has the label, such pods start without a gate." },
    { isNamespaceGuarded: false, says: "and neither does their Namespace: such pods start without a gate." },
  ])(
    "Enforced condition mentions pods without the label unless the Namespace is guarded ($isNamespaceGuarded)",
    ({ says, ...namespace }) => {
      const { message } = enforced(reports, { selected: { ...selected, ...namespace, unlabelled: 2 } });
      expect(message).toContain(`2 of the pods do not have the label postern.dev/guarded: "true"`);
      expect(message).toContain(says);
    },
  );

  test("Enforced condition requires no pod label in a guarded Namespace", () => {
    const pods = [pod("a"), pod("b")];
    const unlabelled = (is?: boolean) => selectedBy(policy({ app: "orders" }), pods, [], is).unlabelled;
    expect([unlabelled(), unlabelled(false), unlabelled(true)]).toEqual([2, 2, 0]);
  });

  test("Enforced is False for pods without a gate even when reports are unreadable", () => {
    expect(enforced(undefined, { selected: { ...selected, unguarded: ["x"] } })).toMatchObject({
      reason: "UnguardedPods",
    });
  });

  test("Enforced is never True while the pods are unknown", () => {
    expect(enforced(reports, { selected: "unknown" })).toMatchObject({ status: "Unknown", reason: "PodsUnavailable" });
    expect(enforced(reports)).toMatchObject({ status: "True" });
  });

  test("Enforced condition lists unguarded pods only in its Event, up to a maximum number", () => {
    const unguarded = Array.from({ length: 50 }, (_, i) => `pod-${i}`);
    const condition = enforced(reports, { selected: { ...selected, unguarded } });
    expect(condition.message).not.toContain("pod-0");
    expect(condition.note).toMatch(/pod-0, .*pod-19 and 30 more/);
  });
});
