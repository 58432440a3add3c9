import { describe, expect, test } from "vitest";
import type { SeenPod } from "../../pods/pod.ts";
import { anObject } from "../../test/builders.ts";
import { aGate } from "../../test/seen-pods.ts";
import { selectorOf } from "./choose-policy.ts";
import { enforced } from "./enforced.ts";
import { mayShare, selectedBy } from "./selection.ts";

const policy = (matchLabels: unknown, metadata: Parameters<typeof anObject>[2] = {}) =>
  anObject("ApiKeyPolicy", { selector: { matchLabels } }, metadata);
const pod = (name: string, more: Partial<SeenPod> = {}): SeenPod => ({
  namespace: "shop",
  name,
  labels: { app: "orders" },
  isRunning: true,
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
    rival: undefined,
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
      rival: older,
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

describe("Enforced", () => {
  const reports = { pods: 2, current: 2, oldestLagMs: 1 };
  const selected = {
    own: [],
    gated: [],
    expected: ["shop/a", "shop/b"],
    guarded: 2,
    unguarded: [],
    unlabelled: 0,
    isNamespaceGuarded: undefined,
    contested: 0,
    rival: undefined,
  };

  test.each([
    { name: "every pod has a gate that reported", of: {}, status: "True", reason: "Succeeded" },
    { name: "a pod has none", of: { unguarded: ["x"] }, status: "False", reason: "UnguardedPods" },
    { name: "a gate has not reported", of: { guarded: 3 }, status: "False", reason: "Progressing" },
    { name: "pods lack the label", of: { unlabelled: 2 }, status: "True", reason: "Succeeded" },
  ])("is $status when $name", ({ of, status, reason }) => {
    expect(enforced(reports, { ...selected, ...of })).toMatchObject({ status, reason });
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
    const condition = enforced(dataPlane, selected);
    expect(condition.status).toBe(status);
    expect(condition.message).toContain(says);
  });

  test("goes by the number of reports for gates by hand, and names a bounded number of pods", () => {
    const dataPlane = { pods: 1, current: 1, oldestLagMs: 1, podIds: ["orders-host"] };
    expect(enforced(dataPlane, { ...selected, guarded: 1, expected: [] })).toMatchObject({ status: "True" });
    expect(enforced(dataPlane, { ...selected, guarded: 3, expected: ["shop/a"] }).message).toBe(
      "1 of the 3 running pods with a gate have reported; not a and others.",
    );
    const expected = Array.from({ length: 50 }, (_, i) => `shop/pod-${i}`);
    expect(enforced(dataPlane, { ...selected, guarded: 50, expected }).message).toMatch(/pod-4 and others\.$/);
  });

  test.each([
    { isNamespaceGuarded: undefined, says: "Unless their Namespace has it, pods like them start without a gate." },
    { isNamespaceGuarded: false, says: "and neither does their Namespace: pods like them start without a gate." },
  ])("tells of pods without the label, in a Namespace that has it: $isNamespaceGuarded", ({ says, ...namespace }) => {
    const { message } = enforced(reports, { ...selected, ...namespace, unlabelled: 2 });
    expect(message).toContain(`2 of the pods do not have the label postern.dev/guarded: "true"`);
    expect(message).toContain(says);
  });

  test("does not miss the label at pods whose Namespace has it", () => {
    const pods = [pod("a"), pod("b")];
    const unlabelled = (is?: boolean) => selectedBy(policy({ app: "orders" }), pods, [], is).unlabelled;
    expect([unlabelled(), unlabelled(false), unlabelled(true)]).toEqual([2, 2, 0]);
  });

  test("is False for pods without a gate also while no report can be read", () => {
    expect(enforced(undefined, { ...selected, unguarded: ["x"] })).toMatchObject({ reason: "UnguardedPods" });
  });

  test("is never True while it is not known which pods there are", () => {
    expect(enforced(reports, "unknown")).toMatchObject({ status: "Unknown", reason: "PodsUnavailable" });
    expect(enforced(reports, undefined)).toMatchObject({ status: "True" });
  });

  test("names a bounded number of pods, in the Event alone", () => {
    const unguarded = Array.from({ length: 50 }, (_, i) => `pod-${i}`);
    const condition = enforced(reports, { ...selected, unguarded });
    expect(condition.message).not.toContain("pod-0");
    expect(condition.note).toMatch(/pod-0, .*pod-19 and 30 more/);
  });
});
