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
  dataPlane: { pods: 0, current: 0, oldestLagMs: 0 },
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
    lookId: 1,
    ...more,
  };
}
const condition = (plan: ReturnType<typeof planPolicy>, type: string) =>
  plan.conditions?.find((one) => one.type === type);

test("the API is made first, then the policy for it", () => {
  expect(planPolicy(observed()).actions).toEqual([{ type: "createApi", name: "orders" }]);
  expect(planPolicy(observed({ api })).actions).toEqual([
    { type: "setPolicy", apiId: api.apiId, name: "test/shop/it", uid: "uid-of-it", generation: 1, policy: compiled() },
  ]);
});

test("a policy that is as written needs nothing, and says what it knows of the sidecars", () => {
  const plan = planPolicy(observed({ api, stored: aPolicy({ dataPlane: { pods: 2, current: 2, oldestLagMs: 120 } }) }));
  expect(plan).toMatchObject({
    actions: [],
    verdict: { state: "Ready" },
    status: {
      apiId: api.apiId,
      policyId: "pol_1",
      policyVersion: 3,
      dataPlane: { pods: 2, current: 2, oldestLagMs: 5000 },
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
])("a stored policy of $name is set again", ({ more }) => {
  expect(planPolicy(observed({ api, stored: aPolicy(more) })).actions).toMatchObject([
    { type: "setPolicy", generation: 1 },
  ]);
});

test("a changed name renames the API", () => {
  const plan = planPolicy(observed({ api: { ...api, name: "old" }, stored: aPolicy() }));
  expect(plan.actions).toEqual([{ type: "renameApi", apiId: api.apiId, name: "orders" }]);
});

test("a query that does not parse is told with its place before anything is made for it", () => {
  const plan = planPolicy(observed({ spec: { ...spec, rules: [{ permissions: "a AND" }] } }));
  expect(plan).toMatchObject({ actions: [], verdict: { state: "Stalled", reason: "PermissionQueryInvalid" } });
  expect(plan.verdict.message).toContain("spec.rules[0].permissions");
  expect(condition(plan, "Accepted")).toMatchObject({ status: "False", reason: "PermissionQueryInvalid" });
});

test("the last good generation is said to stay in force", () => {
  const broken = anObject("ApiKeyPolicy", { ...spec, rules: "none" }, { generation: 2 });
  const plan = planPolicy(observed({ object: broken, api, stored: aPolicy() }));
  expect(plan).toMatchObject({ actions: [], verdict: { reason: "InvalidSpec" }, status: { policyId: "pol_1" } });
  expect(condition(plan, "Enforced")?.message).toContain("Generation 1 (version 3) stays in force");
});

describe("rate-limit namespaces", () => {
  const limited = {
    ...spec,
    rules: [{ ratelimits: [{ namespace: "public", identifier: "key", limit: 1, duration: "60s" }] }],
  };

  test("are put in by their ids", () => {
    const namespaces = new Map([["public", { namespaceId: "rlns_1" }]]);
    const [action] = planPolicy(observed({ spec: limited, api, namespaces })).actions;
    expect(action).toMatchObject({
      policy: { rules: [{ ratelimits: [{ scope: { kind: "namespace", namespaceId: "rlns_1" } }] }] },
    });
  });

  test.each([
    { verdict: progressing("DependencyNotReady", "There is no rate-limit namespace public.") },
    { verdict: stalled("NotAllowed", "It does not allow that.") },
  ])("that cannot be used keep the policy waiting: $verdict.reason", (resolved) => {
    const plan = planPolicy(observed({ spec: limited, api, namespaces: new Map([["public", resolved]]) }));
    expect(plan).toMatchObject({ actions: [], verdict: resolved.verdict });
  });
});

describe("an API by its id", () => {
  const byId = { ...spec, api: { id: api.apiId } };

  test("must be there", () => {
    expect(planPolicy(observed({ spec: byId })).verdict).toMatchObject({ reason: "DependencyNotReady" });
  });

  test("is used without being managed when it has no manager", () => {
    const plan = planPolicy(observed({ spec: byId, api: { ...api, manager: undefined } }));
    expect(plan.actions).toMatchObject([{ type: "setPolicy", apiId: api.apiId }]);
  });

  test("of another namespace's policy needs its permission", () => {
    const foreign = { ...api, manager: "test/ApiKeyPolicy/platform/it" };
    const owner = (allowedNamespaces: string[]) =>
      anObject("ApiKeyPolicy", { ...spec, allowedNamespaces }, { namespace: "platform" });
    const refused = planPolicy(observed({ spec: byId, api: foreign, apiOwner: owner([]) }));
    expect(refused.verdict).toMatchObject({ state: "Stalled", reason: "NotAllowed" });
    const allowed = planPolicy(observed({ spec: byId, api: foreign, apiOwner: owner(["shop"]) }));
    expect(allowed.actions).toMatchObject([{ type: "setPolicy" }]);
    expect(planPolicy(observed({ spec: byId, api: foreign })).verdict).toMatchObject({ reason: "NotAllowed" });
  });

  test("cannot be exchanged", () => {
    const moved = planPolicy(observed({ spec: { ...spec, api: { id: "api_another1" } }, api }));
    expect(moved.verdict).toMatchObject({ state: "Stalled", reason: "InvalidSpec" });
  });
});

test("two policies of one namespace do not make an API of one name each", () => {
  const elder = anObject("ApiKeyPolicy", spec, { name: "elder", creationTimestamp: "2025-01-01T00:00:00Z" });
  const plan = planPolicy(observed({ claimants: [elder, observed().object] }));
  expect(plan.verdict).toMatchObject({ state: "Stalled", reason: "Conflict" });
});

describe("when the object is deleted", () => {
  const deleted = (deletionPolicy: string | undefined, more: Partial<ObservedPolicy> = {}) => {
    const object = aDeletedObject("ApiKeyPolicy", { ...spec, ...(deletionPolicy ? { deletionPolicy } : {}) });
    return planPolicy(observed({ object, api, stored: aPolicy(), ...more }));
  };

  test("its policy goes and its API stays, unless the spec says otherwise", () => {
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

    test("that one is left to the pods that run, whose gates have no policy any more", () => {
      expect(withPods([runs, ended, redirects]).actions.at(-1)).toEqual({
        ...{ type: "orphanNetworkPolicy", found: own, pods: [runs] },
      });
    });

    test("that one is deleted when no pod needs it", () => {
      expect(withPods([ended, redirects]).actions.at(-1)).toEqual({ type: "deleteNetworkPolicy", found: own });
    });

    test("that one is left to its pods when the selector was removed before", () => {
      const selected = undefined;
      const without = (formerPods: readonly PodSummary[] | "unknown") =>
        deleted(undefined, { selected, formerPods, network: [own] }).actions.at(-1);
      expect(without([runs, ended])).toEqual({ type: "orphanNetworkPolicy", found: own, pods: [runs] });
      expect(without("unknown")).toBeUndefined();
    });

    test("nothing is decided before the pods were listed", () => {
      expect(withPods("unknown")).toMatchObject({ actions: [], verdict: { state: "Progressing" } });
      expect(withPods("unknown").released).toBeUndefined();
    });

    test("the object is released once that one belongs to its pods", () => {
      const orphaned = { ...own, controllerUid: undefined, isOrphaned: true };
      const plan = withPods([runs], orphaned);
      expect(plan.actions.map(({ type }) => type)).toEqual(["deletePolicy", "releaseApi"]);
    });
  });

  test("an API that has keys is not deleted, and the policy stays with it", () => {
    const plan = deleted("Delete", { hasKeys: true });
    expect(plan).toMatchObject({ actions: [], verdict: { state: "Stalled", reason: "HasKeys" } });
    expect(plan.released).toBeUndefined();
  });

  test("an API of somebody else is left alone", () => {
    expect(deleted("Delete", { api: { ...api, manager: undefined } }).actions).toEqual([
      { type: "deletePolicy", policyId: "pol_1" },
    ]);
  });

  test("with nothing left it is released", () => {
    expect(deleted("Delete", { api: undefined, stored: undefined })).toMatchObject({ released: true });
  });
});

describe("sidecars of an older release", () => {
  const condition = (plan: ReturnType<typeof planPolicy>, type: string) =>
    plan.conditions?.find((one) => one.type === type);
  const refusing = { pods: 3, current: 2, oldestLagMs: 10, refused: { pods: 1, reason: "format 2 is not known here" } };
  const planned = (dataPlane: DataPlane | undefined, previous: Condition[] = []) =>
    planPolicy(observed({ api, stored: aPolicy({ dataPlane }), previous }));

  test("make the policy Refused, which an Event tells, and say what to do", () => {
    const refused = condition(planned(refusing), "Unsupported");
    expect(refused).toMatchObject({ status: "True", reason: "UnsupportedFormat", alerts: true });
    expect(refused?.message).toContain("1 of 3 sidecars cannot enforce this generation");
    expect(refused?.message).toContain("format 2 is not known here. Upgrade the sidecars");
    expect(enforced(refusing)).toMatchObject({ status: "False", reason: "UnsupportedFormat" });
    expect(planned(refusing).status).toMatchObject({ dataPlane: { pods: 3, current: 2, refused: 1 } });
  });

  test("are no word in the status of a policy that none ever refused, and one that ends where one did", () => {
    const { refused: _, ...fine } = refusing;
    expect(condition(planned(fine), "Unsupported")).toBeUndefined();
    const before = { type: "Unsupported", status: "True", reason: "UnsupportedFormat", message: "" } as const;
    const previous = [{ ...before, lastTransitionTime: "2026-01-01T00:00:00Z" }];
    expect(condition(planned(fine, previous), "Unsupported")).toMatchObject({ status: "False", alerts: true });
    // Unknown, so the last known value stays.
    expect(condition(planned(undefined, previous), "Unsupported")).toBeUndefined();
  });
});

test.each([
  { name: "no pod reports", dataPlane: { pods: 0, current: 0, oldestLagMs: 0 }, status: "False", reason: "NoPods" },
  { name: "some follow", dataPlane: { pods: 3, current: 2, oldestLagMs: 10 }, status: "False", reason: "Progressing" },
  { name: "all enforce it", dataPlane: { pods: 3, current: 3, oldestLagMs: 10 }, status: "True", reason: "Succeeded" },
  { name: "reports cannot be read", dataPlane: undefined, status: "Unknown", reason: "ReportsUnavailable" },
])("Enforced is $status when $name", ({ dataPlane, status, reason }) => {
  expect(enforced(dataPlane)).toMatchObject({ type: "Enforced", status, reason });
});

describe("sidecars that serve by old knowledge", () => {
  const withLag = (oldestLagMs: number, onStale = {}) =>
    planPolicy(
      observed({
        spec: { ...spec, onStale },
        api,
        stored: aPolicy({ policy: compiled({ ...spec, onStale }), dataPlane: { pods: 2, current: 2, oldestLagMs } }),
      }),
    );

  test("make the policy Stale past spec.onStale.after, and not before", () => {
    expect(condition(withLag(30_000), "Stale")).toMatchObject({ status: "False", reason: "Succeeded", alerts: true });
    const late = condition(withLag(30_001), "Stale");
    expect(late).toMatchObject({ status: "True", reason: "DataStale", alerts: true });
    expect(late?.message).toContain("longer than the 30 s");
    expect(condition(withLag(30_001, { after: "45s" }), "Stale")).toMatchObject({ status: "False" });
  });

  test("are told of with what they do then", () => {
    expect(condition(withLag(40_000), "Stale")?.message).toContain(
      "goes on serving the keys that it knows, up to 900 s",
    );
    const denied = condition(withLag(40_000, { action: "Deny" }), "Stale");
    expect(denied?.message).toContain("refuses every request");
  });

  test("have a while to hear anything at all when they start", () => {
    const never = { pods: 1, current: 1, oldestLagMs: Number.MAX_SAFE_INTEGER };
    const lookedAt = (previous: ObservedPolicy["previous"]) =>
      planPolicy(observed({ api, stored: aPolicy({ dataPlane: never }), previous }));
    const since = (status: "Unknown" | "True", lastedMs: number) => {
      const lastTransitionTime = new Date(NOW_MS - lastedMs).toISOString();
      return [{ type: "Stale", status, reason: "Progressing", message: "", lastTransitionTime }] as const;
    };
    expect(condition(lookedAt([]), "Stale")).toMatchObject({ status: "Unknown" });
    expect(condition(lookedAt(since("Unknown", 30_000)), "Stale")).toMatchObject({ status: "Unknown" });
    expect(condition(lookedAt(since("Unknown", 31_000)), "Stale")).toMatchObject({ status: "True" });
    expect(condition(lookedAt(since("True", 1_000)), "Stale")).toMatchObject({ status: "True" });
    expect(lookedAt([]).status).toMatchObject({ dataPlane: { pods: 1, current: 1 } });
    expect(() => ApiKeyPolicyStatus.parse(lookedAt([]).status)).not.toThrow();
  });

  test("are told of also while a new spec is not accepted", () => {
    const object = anObject("ApiKeyPolicy", { ...spec, rules: "none" }, { generation: 2 });
    const stored = aPolicy({ dataPlane: { pods: 1, current: 1, oldestLagMs: 60_000 } });
    expect(condition(planPolicy(observed({ object, api, stored })), "Stale")).toMatchObject({ status: "True" });
  });

  test("leave the condition as it was while their reports cannot be read; of none there is nothing old", () => {
    expect(
      condition(planPolicy(observed({ api, stored: aPolicy({ dataPlane: undefined }) })), "Stale"),
    ).toBeUndefined();
    expect(condition(planPolicy(observed({ api, stored: aPolicy() })), "Stale")).toMatchObject({ reason: "NoPods" });
  });
});

describe("the policies are polled", () => {
  const NO_PODS = { pods: 0, current: 0, oldestLagMs: 0 };
  const pollMs = (dataPlane: StoredPolicy["dataPlane"], lastedS?: number, reason = "NoPods") => {
    const lastTransitionTime = new Date(NOW_MS - (lastedS ?? 0) * 1000).toISOString();
    const before = { type: "Enforced", status: "False", reason, message: "", lastTransitionTime } as const;
    const previous = lastedS === undefined ? [] : [before];
    const { pace } = planPolicy(observed({ api, stored: aPolicy({ dataPlane }), previous }));
    return pollAfterMs([undefined, pace, undefined], { nowMs: NOW_MS });
  };

  test("every two seconds in the first minute without pods, then ever less often", () => {
    expect([undefined, 0, 59, 120, 3600].map((lastedS) => pollMs(NO_PODS, lastedS))).toEqual([
      2000, 2000, 2000, 4000, 15_000,
    ]);
  });

  test("every second while the first sidecars follow, but not for ever", () => {
    const some = { pods: 3, current: 2, oldestLagMs: 10 };
    expect(pollMs(some, 3600)).toBe(1000);
    expect(pollMs(some, 20, "Progressing")).toBe(1000);
    expect(pollMs(some, 3600, "Progressing")).toBe(15_000);
  });

  test("now and then when all enforce it, and at the pace of the one in the greatest hurry otherwise", () => {
    expect(pollMs({ pods: 3, current: 3, oldestLagMs: 10 }, 10)).toBe(15_000);
    const pace = (soonMs: number, ageMs: number) => ({ soonMs, sinceMs: NOW_MS - ageMs });
    expect(pollAfterMs([pace(2000, 0), pace(1000, 0), pace(2000, 90_000)], { nowMs: NOW_MS })).toBe(1000);
    expect(pollAfterMs([], { nowMs: NOW_MS, restMs: 2000 })).toBe(2000);
  });

  test("and soon as long as it is open whether a sidecar is stale", () => {
    const never = { pods: 1, current: 1, oldestLagMs: Number.MAX_SAFE_INTEGER };
    expect(pollMs(never)).toBe(2000);
    expect(planPolicy(observed({ api, stored: aPolicy({ dataPlane: never }) })).requeueAfterMs).toBe(2000);
  });
});

test("the wavering of a lag is no change of the status", () => {
  const at = (oldestLagMs: number) => toDataPlaneStatus({ pods: 1, current: 1, oldestLagMs })?.oldestLagMs;
  expect([at(1), at(700), at(4999), at(5001)]).toEqual([5000, 5000, 5000, 10_000]);
});
