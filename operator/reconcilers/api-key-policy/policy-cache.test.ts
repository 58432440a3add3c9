import { describe, expect, test } from "vitest";
import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import { anObject, managerOfIt } from "../../test/builders.ts";
import { parseSpec } from "../spec.ts";
import type { ObservedPolicy } from "./observed.ts";
import { createPolicyCache, type ListedPolicy, type PolicyCache } from "./policy-cache.ts";
import { duePolls } from "./poll.ts";
import type { Pace } from "./poll-pace.ts";

const manager = managerOfIt("ApiKeyPolicy");
const KEY = { namespace: "shop", name: "it" };
const SPEC = { api: { name: "orders" }, target: { port: 80 } };
const REPORTS = { pods: 2, updated: 2, maxStalenessMs: 900, podIds: ["shop/a", "shop/b"] };
const onStale = { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 } as const;

function readInto(
  policyCache: PolicyCache,
  { seenAtMs = 1000, name = "it", readId: pollId = policyCache.begin({ ...KEY, name }) } = {},
) {
  const object = anObject("ApiKeyPolicy", SPEC, { name });
  const observed = {
    object,
    parsed: parseSpec(ApiKeyPolicySpec, object),
    stored: { ...aListedPolicy({ uid: object.metadata.uid }), onStale },
    seenAtMs,
    pollId,
  } as unknown as ObservedPolicy;
  return { object, observed };
}

const aListedPolicy = (more: Partial<ListedPolicy> = {}): ListedPolicy => ({
  policyId: "pol_1",
  workspaceId: "ws_1",
  apiId: "api_12345678",
  api: { name: "orders", manager },
  name: "test/shop/it",
  manager,
  uid: "uid-of-it",
  generation: 1,
  version: 3,
  dataPlane: REPORTS,
  ...more,
});

function remembered() {
  const policyCache = createPolicyCache();
  const { object, observed } = readInto(policyCache);
  policyCache.remember({ observed, pace: undefined });
  return { policyCache, object };
}

test("PolicyCache returns the last read with the newest gate reports", () => {
  const { policyCache, object } = remembered();
  expect(policyCache.get(object)?.stored?.dataPlane).toEqual(REPORTS);
  const reports = { pods: 3, updated: 2, maxStalenessMs: 12 };
  expect(policyCache.show(KEY, aListedPolicy({ dataPlane: reports }), 2000)).toBe(true);
  expect(policyCache.get(object)?.stored).toMatchObject({ version: 3, dataPlane: reports });
  expect(policyCache.show(KEY, aListedPolicy({ dataPlane: reports }), 3000)).toBe(false);
});

test.each([
  { name: "another generation", metadata: { generation: 2 } },
  { name: "another object of the same name", metadata: { uid: "uid-2" } },
  { name: "an object that is being deleted", metadata: { deletionTimestamp: "2026-01-02T00:00:00Z" } },
])("PolicyCache returns nothing for $name", ({ metadata }) => {
  expect(remembered().policyCache.get(anObject("ApiKeyPolicy", SPEC, metadata))).toBeUndefined();
});

test.each<{ name: string; change: Partial<ListedPolicy> }>([
  { name: "another version", change: { version: 4 } },
  { name: "another generation", change: { generation: 2 } },
  { name: "another uid", change: { uid: "uid-2" } },
  { name: "another id", change: { policyId: "pol_2" } },
  { name: "no manager", change: { manager: undefined } },
  { name: "another API", change: { apiId: "api_87654321" } },
  { name: "an API of another name", change: { api: { name: "renamed", manager } } },
  { name: "an API without a manager", change: { api: { name: "orders" } } },
  { name: "a deleted API", change: { api: undefined } },
])("PolicyCache requires a full read after a poll with $name", ({ change }) => {
  const { policyCache, object } = remembered();
  expect(policyCache.show(KEY, aListedPolicy(change), 2000)).toBe(true);
  expect(policyCache.get(object)).toBeUndefined();
});

test("PolicyCache requires a full read when the policy is missing from the list", () => {
  const { policyCache, object } = remembered();
  expect(policyCache.show(KEY, undefined, 2000)).toBe(true);
  expect(policyCache.get(object)).toBeUndefined();
});

test("PolicyCache ignores a poll that started before the last full read", () => {
  const { policyCache, object } = remembered();
  expect(policyCache.show(KEY, aListedPolicy({ version: 2 }), 999)).toBe(false);
  expect(policyCache.get(object)?.stored?.version).toBe(3);
});

test.each([
  { name: "the lag wavers", dataPlane: { ...REPORTS, maxStalenessMs: 4000 }, isNew: false },
  { name: "the lag passes a step", dataPlane: { ...REPORTS, maxStalenessMs: 5001 }, isNew: true },
  { name: "another pod reports", dataPlane: { ...REPORTS, podIds: ["shop/a", "shop/c"] }, isNew: true },
  { name: "a pod is behind", dataPlane: { ...REPORTS, updated: 1 }, isNew: true },
  {
    name: "a pod does not support it",
    dataPlane: { ...REPORTS, unsupported: { pods: 1, reason: "format 2" } },
    isNew: true,
  },
  { name: "the reports cannot be read", dataPlane: undefined, isNew: true },
])("PolicyCache requests a new status only when necessary ($isNew): $name", ({ dataPlane, isNew }) => {
  const { policyCache } = remembered();
  expect(policyCache.show(KEY, aListedPolicy({ dataPlane }), 2000)).toBe(isNew);
});

test("PolicyCache requests a new status as soon as staleness exceeds onStale.after", () => {
  const policyCache = createPolicyCache();
  const { observed } = readInto(policyCache);
  const stored = { ...observed.stored, onStale: { ...onStale, afterMs: 7000 } };
  policyCache.remember({ observed: { ...observed, stored } as unknown as ObservedPolicy, pace: undefined });
  expect(policyCache.show(KEY, aListedPolicy({ dataPlane: { ...REPORTS, maxStalenessMs: 6000 } }), 2000)).toBe(true);
  expect(policyCache.show(KEY, aListedPolicy({ dataPlane: { ...REPORTS, maxStalenessMs: 8000 } }), 3000)).toBe(true);
  expect(policyCache.show(KEY, aListedPolicy({ dataPlane: { ...REPORTS, maxStalenessMs: 9000 } }), 4000)).toBe(false);
});

describe("a forgotten policy", () => {
  test("PolicyCache discards a full read if the policy was removed during the read", () => {
    const policyCache = createPolicyCache();
    const { object, observed } = readInto(policyCache);
    policyCache.forget(KEY);
    policyCache.remember({ observed, pace: undefined });
    expect(policyCache.get(object)).toBeUndefined();
  });

  test("computing a status from a dropped PolicyCache entry does not restore the entry", () => {
    const { policyCache, object } = remembered();
    const recalled = policyCache.get(object);
    policyCache.forget(KEY);
    if (recalled !== undefined) policyCache.remember({ observed: { ...recalled, object }, pace: undefined });
    expect(policyCache.get(object)).toBeUndefined();
  });
});

test("PolicyCache reports a poll interval for a policy whose state may change soon", () => {
  const paces: Pace[] = [];
  const policyCache = createPolicyCache((pace) => paces.push(pace));
  policyCache.remember({ observed: readInto(policyCache).observed, pace: { soonMs: 1000, sinceMs: 5 } });
  policyCache.remember({ observed: readInto(policyCache).observed, pace: undefined });
  expect(paces).toEqual([{ soonMs: 1000, sinceMs: 5 }]);
});

test("PolicyCache repeats full reads in order and at a limited rate", () => {
  const policyCache = createPolicyCache();
  for (const [name, seenAtMs] of [
    ["z", 100],
    ["a", 200],
    ["m", 300],
  ] as const) {
    policyCache.remember({ observed: readInto(policyCache, { name, seenAtMs }).observed, pace: undefined });
  }
  // A status computed from the cache does not count as a read.
  const [oldest] = policyCache.list();
  if (oldest !== undefined) policyCache.remember(oldest);
  const names = (beforeMs: number, max: number) =>
    duePolls(policyCache.list(), beforeMs, max).map(({ observed }) => observed.object.metadata.name);
  expect(names(1000, 2)).toEqual(["z", "a"]);
  expect(names(250, 9)).toEqual(["z", "a"]);
  expect(names(1000, 0)).toEqual([]);
});

test("PolicyCache remembers the last report time of a limited number of gates", () => {
  const policyCache = createPolicyCache();
  const dataPlane = (podIds: string[]) => ({ pods: podIds.length, updated: 0, maxStalenessMs: 0, podIds });
  const show = (podIds: string[], atMs: number) =>
    policyCache.show(KEY, { dataPlane: dataPlane(podIds) } as ListedPolicy, atMs);
  show(["shop/a", "shop/b"], 1_000);
  show(["shop/b"], 2_000);
  // A poll without readable reports changes nothing.
  policyCache.show(KEY, undefined, 3_000);
  policyCache.forget(KEY);
  expect([...policyCache.reporters(KEY)]).toEqual([
    ["shop/a", 1_000],
    ["shop/b", 2_000],
  ]);
  for (let i = 0; i < 5; i++)
    show(
      Array.from({ length: 1_000 }, (_, n) => `forged/${i}-${n}`),
      4_000 + i,
    );
  expect(policyCache.reporters(KEY).size).toBe(2_000);
  show(["shop/b"], 9_000);
  expect(policyCache.reporters(KEY).get("shop/b")).toBe(9_000);
  policyCache.drop(KEY);
  expect(policyCache.reporters(KEY).size).toBe(0);
});
