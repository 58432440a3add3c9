import { describe, expect, test } from "vitest";
import { ApiKeyPolicySpec, ApiKeyPolicyStatus } from "../../../core/manifests/api-key-policy.ts";
import { compilePolicy } from "../../../core/manifests/compile-policy.ts";
import type { Condition } from "../../../core/manifests/conditions.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { NetworkPolicy } from "../../network/network-policy.ts";
import type { PodSummary } from "../../pods/pod.ts";
import { aDeletedObject, anObject, managerOfIt } from "../../test/builders.ts";
import { aGate, aPodSummary } from "../../test/seen-pods.ts";
import { progressing, stalled } from "../plan.ts";
import { parseSpec } from "../spec.ts";
import { enforced, toDataPlaneStatus } from "./enforced.ts";
import type { DataPlane, ObservedPolicy, StoredApi, StoredPolicy } from "./observed.ts";
import { planPolicy } from "./plan.ts";
import { pollAfterMs } from "./poll-pace.ts";
import { selectedBy } from "./selection.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const manager = managerOfIt("ApiKeyPolicy");
const spec = { api: { name: "orders" }, target: { port: 8080 }, rules: [{ permissions: "a AND b" }] };
const api: StoredApi = { apiId: "api_12345678", name: "orders", manager };

function compiled(of: unknown = spec): CompiledPolicy {
  const policy = compilePolicy(ApiKeyPolicySpec.parse(of), {
    apiId: api.apiId,
    namespaceIds: new Map([["public", "rlns_1"]]),
  });
  if (Array.isArray(policy)) throw new Error("the spec of the test does not compile");
  return JSON.parse(JSON.stringify(policy)) as CompiledPolicy;
}

const aPolicy = (more: Partial<StoredPolicy> = {}): StoredPolicy => ({
  policyId: "pol_1",
  workspaceId: "ws_1",
  uid: "uid-of-it",
  generation: 1,
  version: 3,
  policy: compiled(),
  manager,
  dataPlane: { pods: 0, updated: 0, maxStalenessMs: 0 },
  ...more,
});

function observed(more: Partial<ObservedPolicy> & { spec?: unknown } = {}): ObservedPolicy {
  const object = more.object ?? anObject("ApiKeyPolicy", more.spec ?? spec);
  return {
    object,
    parsed: parseSpec(ApiKeyPolicySpec, object),
    manager,
    policyName: "test/shop/it",
    api: undefined,
    apiOwner: undefined,
    stored: undefined,
    namespaces: new Map(),
    claimants: [object],
    hasKeys: false,
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
const condition = (plan: ReturnType<typeof planPolicy>, type: string) =>
  plan.conditions?.find((one) => one.type === type);

test("ApiKeyPolicy plan creates the API before its policy", () => {
  expect(planPolicy(observed()).actions).toEqual([{ type: "createApi", name: "orders" }]);
  expect(planPolicy(observed({ api })).actions).toEqual([
    { type: "setPolicy", apiId: api.apiId, name: "test/shop/it", uid: "uid-of-it", generation: 1, policy: compiled() },
  ]);
});

test("ApiKeyPolicy plan has no actions when the stored policy matches, and reports gates", () => {
  const plan = planPolicy(
    observed({ api, stored: aPolicy({ dataPlane: { pods: 2, updated: 2, maxStalenessMs: 120 } }) }),
  );
  expect(plan).toMatchObject({
    actions: [],
    verdict: { state: "Ready" },
    status: {
      apiId: api.apiId,
      policyId: "pol_1",
      policyVersion: 3,
      dataPlane: { pods: 2, updated: 2, maxStalenessMs: 5000 },
    },
  });
  expect(condition(plan, "Accepted")).toMatchObject({ status: "True" });
  expect(condition(plan, "Enforced")).toMatchObject({ status: "True" });
});

test.each([
  { name: "another generation", more: { generation: 0 } },
  { name: "another object of the same name", more: { uid: "of-a-former-one" } },
  { name: "another policy", more: { policy: { ...compiled(), mode: "Audit" as const } } },
  { name: "no manager", more: { manager: undefined } },
])("ApiKeyPolicy plan writes a stored policy of $name again", ({ more }) => {
  expect(planPolicy(observed({ api, stored: aPolicy(more) })).actions).toMatchObject([
    { type: "setPolicy", generation: 1 },
  ]);
});

test("ApiKeyPolicy plan renames the API when its name changes", () => {
  const plan = planPolicy(observed({ api: { ...api, name: "old" }, stored: aPolicy() }));
  expect(plan.actions).toEqual([{ type: "renameApi", apiId: api.apiId, name: "orders" }]);
});

test("ApiKeyPolicy plan reports an invalid query before creating resources", () => {
  const plan = planPolicy(observed({ spec: { ...spec, rules: [{ permissions: "a AND" }] } }));
  expect(plan).toMatchObject({ actions: [], verdict: { state: "Stalled", reason: "PermissionQueryInvalid" } });
  expect(plan.verdict.message).toContain("spec.rules[0].permissions");
  expect(condition(plan, "Accepted")).toMatchObject({ status: "False", reason: "PermissionQueryInvalid" });
});

test("ApiKeyPolicy plan reports that the last valid generation stays active", () => {
  const broken = anObject("ApiKeyPolicy", { ...spec, rules: "none" }, { generation: 2 });
  const plan = planPolicy(observed({ object: broken, api, stored: aPolicy() }));
  expect(plan).toMatchObject({ actions: [], verdict: { reason: "InvalidSpec" }, status: { policyId: "pol_1" } });
  expect(condition(plan, "Enforced")?.message).toContain("Generation 1 (version 3) remains active");
});

describe("rate limit namespaces", () => {
  const limited = {
    ...spec,
    rules: [{ ratelimits: [{ namespace: "public", identifier: "Key", limit: 1, duration: "60s" }] }],
  };

  test("ApiKeyPolicy plan refers to rate limit namespaces by id", () => {
    const namespaces = new Map([["public", { namespaceId: "rlns_1" }]]);
    const [action] = planPolicy(observed({ spec: limited, api, namespaces })).actions;
    expect(action).toMatchObject({
      policy: { rules: [{ ratelimits: [{ scope: { kind: "namespace", namespaceId: "rlns_1" } }] }] },
    });
  });

  test.each([
    { verdict: progressing("DependencyNotReady", "There is no rate-limit namespace public.") },
    { verdict: stalled("NotAllowed", "It does not allow that.") },
  ])("ApiKeyPolicy waits for an unusable rate limit namespace: $verdict.reason", (resolved) => {
    const plan = planPolicy(observed({ spec: limited, api, namespaces: new Map([["public", resolved]]) }));
    expect(plan).toMatchObject({ actions: [], verdict: resolved.verdict });
  });
});

describe("an API by its id", () => {
  const byId = { ...spec, api: { id: api.apiId } };

  test("ApiKeyPolicy plan requires that an API referenced by id exists", () => {
    expect(planPolicy(observed({ spec: byId })).verdict).toMatchObject({ reason: "DependencyNotReady" });
  });

  test("ApiKeyPolicy plan uses an unmanaged API without taking ownership", () => {
    const plan = planPolicy(observed({ spec: byId, api: { ...api, manager: undefined } }));
    expect(plan.actions).toMatchObject([{ type: "setPolicy", apiId: api.apiId }]);
  });

  test("ApiKeyPolicy plan uses an API of another namespace only with permission", () => {
    const foreign = { ...api, manager: "test/ApiKeyPolicy/platform/it" };
    const owner = (allowedNamespaces: string[]) =>
      anObject("ApiKeyPolicy", { ...spec, allowedNamespaces }, { namespace: "platform" });
    const refused = planPolicy(observed({ spec: byId, api: foreign, apiOwner: owner([]) }));
    expect(refused.verdict).toMatchObject({ state: "Stalled", reason: "NotAllowed" });
    const allowed = planPolicy(observed({ spec: byId, api: foreign, apiOwner: owner(["shop"]) }));
    expect(allowed.actions).toMatchObject([{ type: "setPolicy" }]);
    expect(planPolicy(observed({ spec: byId, api: foreign })).verdict).toMatchObject({ reason: "NotAllowed" });
  });

  test("ApiKeyPolicy plan rejects a change of the referenced API", () => {
    const moved = planPolicy(observed({ spec: { ...spec, api: { id: "api_another1" } }, api }));
    expect(moved.verdict).toMatchObject({ state: "Stalled", reason: "InvalidSpec" });
  });
});

test("equally named policies of one namespace create only one API", () => {
  const elder = anObject("ApiKeyPolicy", spec, { name: "elder", creationTimestamp: "2025-01-01T00:00:00Z" });
  const plan = planPolicy(observed({ claimants: [elder, observed().object] }));
  expect(plan.verdict).toMatchObject({ state: "Stalled", reason: "Conflict" });
});

describe("the object is deleted", () => {
  const deleted = (deletionPolicy: string | undefined, more: Partial<ObservedPolicy> = {}) => {
    const object = aDeletedObject("ApiKeyPolicy", { ...spec, ...(deletionPolicy ? { deletionPolicy } : {}) });
    return planPolicy(observed({ object, api, stored: aPolicy(), ...more }));
  };

  test("deleting an ApiKeyPolicy removes its policy and keeps its API by default", () => {
    expect(deleted(undefined).actions).toEqual([
      { type: "deletePolicy", policyId: "pol_1" },
      { type: "releaseApi", apiId: api.apiId },
    ]);
    expect(deleted("Delete").actions).toMatchObject([{ type: "deletePolicy" }, { type: "deleteApi" }]);
  });

  describe("and has a NetworkPolicy", () => {
    const own: NetworkPolicy = {
      ...{ namespace: "shop", name: "postern-it", uid: "uid-of-np", controllerUid: "uid-of-it", isOrphaned: false },
      spec: { podSelector: {} },
    };
    const withPods = (pods: readonly PodSummary[] | "unknown", network: NetworkPolicy = own) =>
      deleted(undefined, {
        selected: pods === "unknown" ? pods : selectedBy(observed().object, pods, []),
        network: [network],
      });
    const runs = aPodSummary("runs");
    const ended = aPodSummary("ended", { isRunning: false, hasEnded: true });
    const redirects = aPodSummary("redirects", { gate: { ...aGate, redirects: true } });

    test("deleting an ApiKeyPolicy hands its NetworkPolicy over to running pods", () => {
      expect(withPods([runs, ended, redirects]).actions.at(-1)).toEqual({
        ...{ type: "orphanNetworkPolicy", found: own, pods: [runs] },
      });
    });

    test("deleting an ApiKeyPolicy deletes its NetworkPolicy when no pod uses it", () => {
      expect(withPods([ended, redirects]).actions.at(-1)).toEqual({ type: "deleteNetworkPolicy", found: own });
    });

    test("deleting an ApiKeyPolicy hands over its NetworkPolicy after the selector was removed", () => {
      const selected = undefined;
      const without = (formerPods: readonly PodSummary[] | "unknown") =>
        deleted(undefined, { selected, formerPods, network: [own] }).actions.at(-1);
      expect(without([runs, ended])).toEqual({ type: "orphanNetworkPolicy", found: own, pods: [runs] });
      expect(without("unknown")).toBeUndefined();
    });

    test("deleting an ApiKeyPolicy waits until the pods are listed", () => {
      expect(withPods("unknown")).toMatchObject({ actions: [], verdict: { state: "Progressing" } });
      expect(withPods("unknown").released).toBeUndefined();
    });

    test("ApiKeyPolicy finalizer is removed once the pods own its NetworkPolicy", () => {
      const orphaned = { ...own, controllerUid: undefined, isOrphaned: true };
      const plan = withPods([runs], orphaned);
      expect(plan.actions.map(({ type }) => type)).toEqual(["deletePolicy", "releaseApi"]);
    });
  });

  test("deleting an ApiKeyPolicy keeps its policy while its API has keys", () => {
    const plan = deleted("Delete", { hasKeys: true });
    expect(plan).toMatchObject({ actions: [], verdict: { state: "Stalled", reason: "HasKeys" } });
    expect(plan.released).toBeUndefined();
  });

  test("deleting an ApiKeyPolicy leaves an API of another manager unchanged", () => {
    expect(deleted("Delete", { api: { ...api, manager: undefined } }).actions).toEqual([
      { type: "deletePolicy", policyId: "pol_1" },
    ]);
  });

  test("ApiKeyPolicy finalizer is removed when no resources remain", () => {
    expect(deleted("Delete", { api: undefined, stored: undefined })).toMatchObject({ released: true });
  });
});

describe("gates of an older version", () => {
  const condition = (plan: ReturnType<typeof planPolicy>, type: string) =>
    plan.conditions?.find((one) => one.type === type);
  const older = {
    pods: 3,
    updated: 2,
    maxStalenessMs: 10,
    unsupported: { pods: 1, reason: "format 2 is not known here" },
  };
  const planned = (dataPlane: DataPlane | undefined, previous: Condition[] = []) =>
    planPolicy(observed({ api, stored: aPolicy({ dataPlane }), previous }));

  test("gates that do not support a policy set its Unsupported condition and an Event", () => {
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
    planPolicy(
      observed({
        spec: { ...spec, onStale },
        api,
        stored: aPolicy({ policy: compiled({ ...spec, onStale }), dataPlane: { pods: 2, updated: 2, maxStalenessMs } }),
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

  test("Stale condition allows starting gates time for their first data", () => {
    const never = { pods: 1, updated: 1, maxStalenessMs: Number.MAX_SAFE_INTEGER };
    const polledAt = (previous: ObservedPolicy["previous"]) =>
      planPolicy(observed({ api, stored: aPolicy({ dataPlane: never }), previous }));
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
    expect(condition(planPolicy(observed({ object, api, stored })), "Stale")).toMatchObject({ status: "True" });
  });

  test("Stale condition is unchanged while reports are unreadable and absent without gates", () => {
    expect(
      condition(planPolicy(observed({ api, stored: aPolicy({ dataPlane: undefined }) })), "Stale"),
    ).toBeUndefined();
    expect(condition(planPolicy(observed({ api, stored: aPolicy() })), "Stale")).toMatchObject({ reason: "NoPods" });
  });
});

describe("polling of policies", () => {
  const NO_PODS = { pods: 0, updated: 0, maxStalenessMs: 0 };
  const pollMs = (dataPlane: StoredPolicy["dataPlane"], lastedS?: number, reason = "NoPods") => {
    const lastTransitionTime = new Date(NOW_MS - (lastedS ?? 0) * 1000).toISOString();
    const before = { type: "Enforced", status: "False", reason, message: "", lastTransitionTime } as const;
    const previous = lastedS === undefined ? [] : [before];
    const { pace } = planPolicy(observed({ api, stored: aPolicy({ dataPlane }), previous }));
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

  test("enforced policy is polled rarely, and any other policy at its most urgent rate", () => {
    expect(pollMs({ pods: 3, updated: 3, maxStalenessMs: 10 }, 10)).toBe(15_000);
    const pace = (soonMs: number, ageMs: number) => ({ soonMs, sinceMs: NOW_MS - ageMs });
    expect(pollAfterMs([pace(2000, 0), pace(1000, 0), pace(2000, 90_000)], { nowMs: NOW_MS })).toBe(1000);
    expect(pollAfterMs([], { nowMs: NOW_MS, restMs: 2000 })).toBe(2000);
  });

  test("policy is polled soon while staleness of a gate is uncertain", () => {
    const never = { pods: 1, updated: 1, maxStalenessMs: Number.MAX_SAFE_INTEGER };
    expect(pollMs(never)).toBe(2000);
    expect(planPolicy(observed({ api, stored: aPolicy({ dataPlane: never }) })).requeueAfterMs).toBe(2000);
  });
});

test("fluctuating staleness does not change the policy status", () => {
  const at = (maxStalenessMs: number) => toDataPlaneStatus({ pods: 1, updated: 1, maxStalenessMs })?.maxStalenessMs;
  expect([at(1), at(700), at(4999), at(5001)]).toEqual([5000, 5000, 5000, 10_000]);
});
