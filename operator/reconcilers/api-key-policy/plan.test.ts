import { describe, expect, test } from "vitest";
import { ApiKeyPolicySpec, ApiKeyPolicyStatus } from "../../../core/manifests/api-key-policy.ts";
import { compileOnStale } from "../../../core/manifests/compile-policy.ts";
import type { Condition } from "../../../core/manifests/conditions.ts";
import type { NetworkPolicy } from "../../network/network-policy.ts";
import type { PodSummary } from "../../pods/pod.ts";
import { anObject, managerOfIt } from "../../test/builders.ts";
import { aGate, aPodSummary } from "../../test/seen-pods.ts";
import { stalled } from "../plan.ts";
import { parseSpec } from "../spec.ts";
import { enforced, toDataPlaneStatus } from "./enforced.ts";
import { heldConditions } from "./held.ts";
import { networkCleanUp, ownNetworkPolicy } from "./network.ts";
import type { DataPlane, ObservedPolicy, StoredPolicy } from "./observed.ts";
import { reportPolicy } from "./plan.ts";
import { pollAfterMs } from "./poll-pace.ts";
import { selectedBy } from "./selection.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const spec = { api: { name: "orders" }, target: { port: 8080 }, rules: [{ permissions: "a AND b" }] };

const aPolicy = (more: Partial<StoredPolicy> = {}): StoredPolicy => ({
  policyId: "pol_1",
  workspaceId: "ws_1",
  apiId: "api_12345678",
  name: "test/shop/it",
  uid: "uid-of-it",
  generation: 1,
  version: 3,
  manager: managerOfIt("ApiKeyPolicy"),
  onStale: compileOnStale(ApiKeyPolicySpec.parse(spec)),
  dataPlane: { pods: 0, updated: 0, maxStalenessMs: 0 },
  ...more,
});

function observed(more: Partial<ObservedPolicy> & { spec?: unknown } = {}): ObservedPolicy {
  const object = more.object ?? anObject("ApiKeyPolicy", more.spec ?? spec);
  return {
    object,
    parsed: parseSpec(ApiKeyPolicySpec, object),
    stored: undefined,
    selected: undefined,
    network: undefined,
    services: undefined,
    named: [],
    heard: new Map(),
    previous: [],
    nowMs: NOW_MS,
    seenAtMs: NOW_MS,
    pollId: 1,
    ...more,
  };
}
const condition = (plan: ReturnType<typeof reportPolicy>, type: string) =>
  plan.conditions?.find((one) => one.type === type);

test("ApiKeyPolicy plan for a matching stored policy has no actions and reports the state of the gates", () => {
  const plan = reportPolicy(observed({ stored: aPolicy({ dataPlane: { pods: 2, updated: 2, maxStalenessMs: 120 } }) }));
  expect(plan).toMatchObject({
    actions: [],
    verdict: { state: "Ready" },
    status: {
      apiId: "api_12345678",
      policyId: "pol_1",
      policyVersion: 3,
      dataPlane: { pods: 2, updated: 2, maxStalenessMs: 5000 },
    },
  });
  expect(condition(plan, "Accepted")).toMatchObject({ status: "True" });
  expect(condition(plan, "Enforced")).toMatchObject({ status: "True" });
});

describe("deletion of an object with a NetworkPolicy", () => {
  const own: NetworkPolicy = {
    ...{ namespace: "shop", name: "postern-it", uid: "uid-of-np", controllerUid: "uid-of-it", isOrphaned: false },
    spec: { podSelector: {} },
  };
  const runs = aPodSummary("runs");
  const ended = aPodSummary("ended", { isRunning: false, hasEnded: true });
  const redirects = aPodSummary("redirects", { gate: { ...aGate, redirects: true } });
  const cleanUp = (pods: readonly PodSummary[]) =>
    networkCleanUp({ selected: selectedBy(observed().object, pods, []) }, own);

  test("deleting an ApiKeyPolicy hands its NetworkPolicy over to running pods", () => {
    expect(cleanUp([runs, ended, redirects])).toEqual({ type: "orphanNetworkPolicy", found: own, pods: [runs] });
  });

  test("deleting an ApiKeyPolicy deletes its NetworkPolicy when no pod uses it", () => {
    expect(cleanUp([ended, redirects])).toEqual({ type: "deleteNetworkPolicy", found: own });
  });

  test("deleting an ApiKeyPolicy hands over its NetworkPolicy after the selector was removed", () => {
    const without = networkCleanUp({ selected: undefined, formerPods: [runs, ended] }, own);
    expect(without).toEqual({ type: "orphanNetworkPolicy", found: own, pods: [runs] });
  });

  test("a NetworkPolicy that was handed over to pods no longer belongs to the object", () => {
    const orphaned = { ...own, controllerUid: undefined, isOrphaned: true };
    expect(ownNetworkPolicy(observed({ network: [orphaned] }))).toBeUndefined();
  });
});

describe("gates of an older version", () => {
  const condition = (plan: ReturnType<typeof reportPolicy>, type: string) =>
    plan.conditions?.find((one) => one.type === type);
  const older = {
    pods: 3,
    updated: 2,
    maxStalenessMs: 10,
    unsupported: { pods: 1, reason: "format 2 is not known here" },
  };
  const planned = (dataPlane: DataPlane | undefined, previous: Condition[] = []) =>
    reportPolicy(observed({ stored: aPolicy({ dataPlane }), previous }));

  test("gates that do not support a policy cause its Unsupported condition and an Event", () => {
    const found = condition(planned(older), "Unsupported");
    expect(found).toMatchObject({ status: "True", reason: "UnsupportedFormat", alerts: true });
    expect(found?.message).toContain("1 of 3 gates cannot enforce this generation");
    expect(found?.message).toContain("format 2 is not known here. Upgrade the gates");
    expect(enforced(older)).toMatchObject({ status: "False", reason: "UnsupportedFormat" });
    expect(planned(older).status).toMatchObject({ dataPlane: { pods: 3, updated: 2, unsupported: 1 } });
  });

  test("Unsupported condition is absent by default and ends when gates are updated", () => {
    const { unsupported: _, ...fine } = older;
    expect(condition(planned(fine), "Unsupported")).toBeUndefined();
    const before = { type: "Unsupported", status: "True", reason: "UnsupportedFormat", message: "" } as const;
    const previous = [{ ...before, lastTransitionTime: "2026-01-01T00:00:00Z" }];
    expect(condition(planned(fine, previous), "Unsupported")).toMatchObject({ status: "False", alerts: true });
    // The state is unknown, so the previous condition remains.
    expect(condition(planned(undefined, previous), "Unsupported")).toBeUndefined();
  });
});

test.each([
  { name: "no pod reports", dataPlane: { pods: 0, updated: 0, maxStalenessMs: 0 }, status: "False", reason: "NoPods" },
  {
    name: "some follow",
    dataPlane: { pods: 3, updated: 2, maxStalenessMs: 10 },
    status: "False",
    reason: "Progressing",
  },
  {
    name: "all enforce it",
    dataPlane: { pods: 3, updated: 3, maxStalenessMs: 10 },
    status: "True",
    reason: "Succeeded",
  },
  { name: "reports cannot be read", dataPlane: undefined, status: "Unknown", reason: "ReportsUnavailable" },
])("Enforced condition is $status when $name", ({ dataPlane, status, reason }) => {
  expect(enforced(dataPlane)).toMatchObject({ type: "Enforced", status, reason });
});

describe("gates with stale data", () => {
  const withLag = (maxStalenessMs: number, onStale = {}) =>
    reportPolicy(
      observed({
        spec: { ...spec, onStale },
        stored: aPolicy({
          onStale: compileOnStale(ApiKeyPolicySpec.parse({ ...spec, onStale })),
          dataPlane: { pods: 2, updated: 2, maxStalenessMs },
        }),
      }),
    );

  test("Stale condition becomes True only after spec.onStale.after", () => {
    expect(condition(withLag(30_000), "Stale")).toMatchObject({ status: "False", reason: "Succeeded", alerts: true });
    const late = condition(withLag(30_001), "Stale");
    expect(late).toMatchObject({ status: "True", reason: "DataStale", alerts: true });
    expect(late?.message).toContain("older than the 30 s");
    expect(condition(withLag(30_001, { after: "45s" }), "Stale")).toMatchObject({ status: "False" });
  });

  test("Stale condition message states how gates act on stale data", () => {
    expect(condition(withLag(40_000), "Stale")?.message).toContain("continues to accept cached keys, up to 900 s");
    const denied = condition(withLag(40_000, { action: "Deny" }), "Stale");
    expect(denied?.message).toContain("rejects all requests");
  });

  test("Stale condition gives starting gates time to receive their first data", () => {
    const never = { pods: 1, updated: 1, maxStalenessMs: Number.MAX_SAFE_INTEGER };
    const polledAt = (previous: ObservedPolicy["previous"]) =>
      reportPolicy(observed({ stored: aPolicy({ dataPlane: never }), previous }));
    const since = (status: "Unknown" | "True", lastedMs: number) => {
      const lastTransitionTime = new Date(NOW_MS - lastedMs).toISOString();
      return [{ type: "Stale", status, reason: "Progressing", message: "", lastTransitionTime }] as const;
    };
    expect(condition(polledAt([]), "Stale")).toMatchObject({ status: "Unknown" });
    expect(condition(polledAt(since("Unknown", 30_000)), "Stale")).toMatchObject({ status: "Unknown" });
    expect(condition(polledAt(since("Unknown", 31_000)), "Stale")).toMatchObject({ status: "True" });
    expect(condition(polledAt(since("True", 1_000)), "Stale")).toMatchObject({ status: "True" });
    expect(polledAt([]).status).toMatchObject({ dataPlane: { pods: 1, updated: 1 } });
    expect(() => ApiKeyPolicyStatus.parse(polledAt([]).status)).not.toThrow();
  });

  test("Stale condition is reported even while a new spec is rejected", () => {
    const object = anObject("ApiKeyPolicy", { ...spec, rules: "none" }, { generation: 2 });
    const stored = aPolicy({ dataPlane: { pods: 1, updated: 1, maxStalenessMs: 60_000 } });
    const conditions = heldConditions(stalled("InvalidSpec", "rules: expected a list"), observed({ object, stored }));
    expect(conditions.find(({ type }) => type === "Stale")).toMatchObject({ status: "True" });
  });

  test("Stale condition is absent without gates, and unchanged while reports are unreadable", () => {
    expect(condition(reportPolicy(observed({ stored: aPolicy({ dataPlane: undefined }) })), "Stale")).toBeUndefined();
    expect(condition(reportPolicy(observed({ stored: aPolicy() })), "Stale")).toMatchObject({ reason: "NoPods" });
  });
});

describe("polling of policies", () => {
  const NO_PODS = { pods: 0, updated: 0, maxStalenessMs: 0 };
  const pollMs = (dataPlane: StoredPolicy["dataPlane"], lastedS?: number, reason = "NoPods") => {
    const lastTransitionTime = new Date(NOW_MS - (lastedS ?? 0) * 1000).toISOString();
    const before = { type: "Enforced", status: "False", reason, message: "", lastTransitionTime } as const;
    const previous = lastedS === undefined ? [] : [before];
    const { pace } = reportPolicy(observed({ stored: aPolicy({ dataPlane }), previous }));
    return pollAfterMs([undefined, pace, undefined], { nowMs: NOW_MS });
  };

  test("policy without pods is polled every 2 s for a minute, then less often", () => {
    expect([undefined, 0, 59, 120, 3600].map((lastedS) => pollMs(NO_PODS, lastedS))).toEqual([
      2000, 2000, 2000, 4000, 15_000,
    ]);
  });

  test("policy is polled every second for a limited time while its first gates update", () => {
    const some = { pods: 3, updated: 2, maxStalenessMs: 10 };
    expect(pollMs(some, 3600)).toBe(1000);
    expect(pollMs(some, 20, "Progressing")).toBe(1000);
    expect(pollMs(some, 3600, "Progressing")).toBe(15_000);
  });

  test("fully enforced policies are polled rarely, and otherwise the most urgent policy sets the rate", () => {
    expect(pollMs({ pods: 3, updated: 3, maxStalenessMs: 10 }, 10)).toBe(15_000);
    const pace = (soonMs: number, ageMs: number) => ({ soonMs, sinceMs: NOW_MS - ageMs });
    expect(pollAfterMs([pace(2000, 0), pace(1000, 0), pace(2000, 90_000)], { nowMs: NOW_MS })).toBe(1000);
    expect(pollAfterMs([], { nowMs: NOW_MS, restMs: 2000 })).toBe(2000);
  });

  test("policy is polled soon while staleness of a gate is uncertain", () => {
    const never = { pods: 1, updated: 1, maxStalenessMs: Number.MAX_SAFE_INTEGER };
    expect(pollMs(never)).toBe(2000);
    expect(reportPolicy(observed({ stored: aPolicy({ dataPlane: never }) })).requeueAfterMs).toBe(2000);
  });
});

test("fluctuating staleness does not change the policy status", () => {
  const at = (maxStalenessMs: number) => toDataPlaneStatus({ pods: 1, updated: 1, maxStalenessMs })?.maxStalenessMs;
  expect([at(1), at(700), at(4999), at(5001)]).toEqual([5000, 5000, 5000, 10_000]);
});
