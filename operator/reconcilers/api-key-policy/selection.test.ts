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

test("pods are counted by gate, label and policy, those that do not run left out", () => {
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

  test("is its own all the same when the pod names it", () => {
    expect(selectedBy(own, [{ ...shared, gate: aGate, policy: "it" }], [own, older])).toMatchObject({
      guarded: 1,
      contested: 0,
    });
  });

  test("is its own when the pod names it, and it does not select the pod", () => {
    const named = pod("named", { labels: { app: "other" } });
    expect(selectedBy(own, [named], [own, older])).toMatchObject({ guarded: 1, unguarded: [] });
  });

  test("has no gate of it when the pod names a younger one", () => {
    const named = pod("named", { policy: "younger" });
    expect(selectedBy(own, [named], [own, younger])).toMatchObject({ unguarded: ["named"], contested: 0 });
  });

  test("is the older one's, and no pod of the other", () => {
    expect(selectedBy(own, [shared, pod("mine")], [own, older])).toMatchObject({
      guarded: 1,
      unguarded: [],
      contested: 1,
      competitor: older,
    });
    expect(selectedBy(own, [shared], [own, younger])).toMatchObject({ unguarded: ["shared"], contested: 0 });
  });

  test("is no longer that of a policy that is being deleted, or of another namespace", () => {
    const deleted = { ...older, metadata: { ...older.metadata, deletionTimestamp: "2026-02-01T00:00:00Z" } };
    const elsewhere = { ...older, metadata: { ...older.metadata, namespace: "bank" } };
    for (const other of [deleted, elsewhere])
      expect(selectedBy(own, [shared], [own, other])).toMatchObject({ contested: 0 });
  });

  test("can be there only if no label is asked for with two values", () => {
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
])("a pod is outdated when the policy's port is $name: $outdated", ({ port, outdated }) => {
  const one = anObject("ApiKeyPolicy", { selector: { matchLabels: { app: "orders" } }, target: { port } });
  const pods = [pod("a"), pod("unknown", { gate: { ...aGate, guards: undefined } })];
  expect(selectedBy(one, pods, []).outdated).toEqual(outdated ? ["a"] : []);
  // A gate by hand needs no named port.
  const byHand = pod("by-hand", { policy: undefined, gate: { ...aGate, ports: [] } });
  expect(selectedBy(one, [byHand], []).outdated).toEqual(port === 9090 ? ["by-hand"] : []);
});

test("a policy without a selector knows the gates that were injected for it", () => {
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
  const reports = { pods: 2, current: 2, oldestLagMs: 1 };
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
  ])("is $status when $name", ({ of, status, reason }) => {
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
  ])("goes by the names of pods: $status when $name", ({ podIds, status, says }) => {
    const dataPlane = { pods: podIds.length, current: podIds.length, oldestLagMs: 1, podIds };
    const condition = enforced(dataPlane, { selected });
    expect(condition.status).toBe(status);
    expect(condition.message).toContain(says);
  });

  describe("tells of a gate that reported once and no longer does", () => {
    const heard = new Map([
      ["shop/a", Date.parse("2026-03-01T10:00:00Z")],
      ["shop/b", Date.parse("2026-03-01T10:05:00Z")],
    ]);
    const one = { pods: 1, current: 1, oldestLagMs: 1, podIds: ["shop/b"] };

    test("by its name and the time of its last report, before anything that the others report", () => {
      const condition = enforced({ ...one, current: 0 }, { selected, heard });
      expect(condition).toMatchObject({ status: "False", reason: "PodsSilent" });
      expect(condition.message).toContain(
        "1 of the 2 running pods no longer report: a (last heard from at 2026-03-01T10:00:00.000Z).",
      );
      expect(toDataPlaneStatus(one, { selected, heard })).toMatchObject({ silent: 1 });
    });

    test("also when no gate is left that reports", () => {
      const none = { pods: 0, current: 0, oldestLagMs: 0 };
      expect(enforced(none, { selected, heard })).toMatchObject({ reason: "PodsSilent" });
      expect(enforced(none, { selected })).toMatchObject({ reason: "NoPods" });
      expect(toDataPlaneStatus(none, { selected })).toMatchObject({ silent: 2 });
    });

    test("of a policy without a selector, by the pods that name it", () => {
      const named = ["shop/a", "shop/b"];
      expect(enforced(one, { selected: undefined, named, heard })).toMatchObject({ reason: "PodsSilent" });
      expect(
        enforced({ ...one, pods: 2, current: 2, podIds: named }, { selected: undefined, named, heard }),
      ).toMatchObject({
        status: "True",
      });
    });

    test("but not of a pod that is gone", () => {
      const gone = new Map([...heard, ["shop/gone", 1]]);
      const both = { pods: 2, current: 2, oldestLagMs: 1, podIds: ["shop/a", "shop/b"] };
      expect(enforced(both, { selected, heard: gone })).toMatchObject({ status: "True" });
    });
  });

  test("is False, PodsOutdated, for gates that guard another port, by the pods or else by the reports", () => {
    const old = enforced(reports, { selected: { ...selected, outdated: ["a", "b"] } });
    expect(old).toMatchObject({ status: "False", reason: "PodsOutdated" });
    expect(old.message).toContain(
      "The gates of 2 of the 2 running pods forward to another port than spec.target.port, which was changed: a, b.",
    );
    const object = anObject("ApiKeyPolicy", { target: { port: 9090 } });
    const upstreamPorts = [
      { port: 8080, pods: 1 },
      { port: 9090, pods: 1 },
    ];
    expect(enforced({ ...reports, upstreamPorts }, { object })).toMatchObject({ reason: "PodsOutdated" });
    // Reports of an earlier release, a name, and pods that say it themselves.
    expect(enforced(reports, { object })).toMatchObject({ status: "True" });
    expect(
      enforced({ ...reports, upstreamPorts }, { object: anObject("ApiKeyPolicy", { target: { port: "http" } }) }),
    ).toMatchObject({
      status: "True",
    });
    expect(enforced({ ...reports, upstreamPorts }, { object, selected })).toMatchObject({ status: "True" });
  });

  test("goes by the number of reports for gates by hand, and names a bounded number of pods", () => {
    const dataPlane = { pods: 1, current: 1, oldestLagMs: 1, podIds: ["orders-host"] };
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
    { isNamespaceGuarded: undefined, says: "Unless their Namespace has it, pods like them start without a gate." },
    { isNamespaceGuarded: false, says: "and neither does their Namespace: pods like them start without a gate." },
  ])("tells of pods without the label, in a Namespace that has it: $isNamespaceGuarded", ({ says, ...namespace }) => {
    const { message } = enforced(reports, { selected: { ...selected, ...namespace, unlabelled: 2 } });
    expect(message).toContain(`2 of the pods do not have the label postern.dev/guarded: "true"`);
    expect(message).toContain(says);
  });

  test("does not miss the label at pods whose Namespace has it", () => {
    const pods = [pod("a"), pod("b")];
    const unlabelled = (is?: boolean) => selectedBy(policy({ app: "orders" }), pods, [], is).unlabelled;
    expect([unlabelled(), unlabelled(false), unlabelled(true)]).toEqual([2, 2, 0]);
  });

  test("is False for pods without a gate also while no report can be read", () => {
    expect(enforced(undefined, { selected: { ...selected, unguarded: ["x"] } })).toMatchObject({
      reason: "UnguardedPods",
    });
  });

  test("is never True while it is not known which pods there are", () => {
    expect(enforced(reports, { selected: "unknown" })).toMatchObject({ status: "Unknown", reason: "PodsUnavailable" });
    expect(enforced(reports)).toMatchObject({ status: "True" });
  });

  test("names a bounded number of pods, in the Event alone", () => {
    const unguarded = Array.from({ length: 50 }, (_, i) => `pod-${i}`);
    const condition = enforced(reports, { selected: { ...selected, unguarded } });
    expect(condition.message).not.toContain("pod-0");
    expect(condition.note).toMatch(/pod-0, .*pod-19 and 30 more/);
  });
});
