import { afterAll, beforeAll, expect, test } from "vitest";
import type { PolicyFields } from "../../../core/manifests/from-store/policy-spec.ts";
import type { PodRefusals } from "../../../edge/pods/contract.ts";
import { buildTestApp, type TestApp, type Workspace } from "../../test/app.ts";
import { makeResources, policyBody, type Resources } from "../../test/resources.ts";

let t: TestApp;
let resources: Resources;
beforeAll(async () => {
  t = await buildTestApp();
  resources = resourcesOf(t.workspace);
});
afterAll(() => t.close());

const resourcesOf = ({ id, rootKey }: Workspace): Resources =>
  makeResources(t.deps.db, { workspaceId: id, ask: (path, body) => t.data(path, body, { rootKey }) });

const refusals = (
  mode: PodRefusals["mode"],
  ...counts: [rule: number, code: string, count: number][]
): PodRefusals => ({
  sinceMs: 1_767_225_600_000,
  mode,
  counts: counts.map(([rule, code, count]) => ({ rule, code, count })),
  others: 1,
});

async function policyWithPods() {
  const { policyId } = await resources.policy();
  const ref = { workspaceId: t.workspace.id, policyId };
  const report = { ...ref, generation: 1, version: 1, stalenessMs: 20 };
  await t.edge.pods.report({
    ...report,
    podId: "shop/b",
    region: "eu-1",
    release: "9.0.0",
    refusals: refusals("Audit", [0, "MISSING_KEY", 200], [-1, "NOT_FOUND", 10]),
  });
  await t.edge.pods.report({ ...report, podId: "shop/a", refusals: refusals("Audit", [0, "MISSING_KEY", 3]) });
  await t.edge.pods.report({
    ...report,
    podId: "shop/old",
    version: 0,
    stalenessMs: 40_000,
    refusals: refusals("Enforce", [0, "MISSING_KEY", 1_000]),
  });
  await t.edge.pods.report({
    ...report,
    podId: "shop/newer",
    version: 0,
    stalenessMs: Number.POSITIVE_INFINITY,
    refused: { version: 1, reason: "format 2 is not known here" },
  });
  return policyId;
}

test("admin policy list shows the gate state of each policy", async () => {
  const policyId = await policyWithPods();
  const rows = await t.data("admin.listPolicies", {});
  const row = rows.find((one: { policyId: string }) => one.policyId === policyId);
  expect(row).toMatchObject({
    mode: "Enforce",
    rules: 0,
    version: 1,
    dataPlane: {
      pods: 4,
      updated: 2,
      behind: 1,
      unsupported: 1,
      reason: "format 2 is not known here",
      stale: 1,
      expired: 1,
      maxStalenessMs: Number.MAX_SAFE_INTEGER,
      // Of the version in force alone: 210 + 1 and 3 + 1.
      wouldRefuse: 215,
      refused: 0,
    },
  });
});

test("admin policy list counts a pod with two policies only once per page", async () => {
  const ids = [(await resources.policy()).policyId, (await resources.policy()).policyId];
  const ref = { workspaceId: t.workspace.id, generation: 1, version: 1, stalenessMs: 20 };
  for (const policyId of ids) await t.edge.pods.report({ ...ref, policyId, podId: "shop/twice" });
  await t.edge.pods.report({ ...ref, policyId: ids[0] ?? "", podId: "shop/once" });
  const rows = await t.data("admin.listPolicies", {});
  const sumOf = (field: "pods" | "firstPods"): number =>
    rows
      .filter(({ policyId }: { policyId: string }) => ids.includes(policyId))
      .reduce((sum: number, { dataPlane }: { dataPlane: Record<string, number> }) => sum + (dataPlane[field] ?? 0), 0);
  expect([sumOf("pods"), sumOf("firstPods")]).toEqual([3, 2]);
  const { dataPlane } = await t.data("admin.getPolicy", { policyId: ids[1] });
  expect(dataPlane).toMatchObject({ pods: 1, firstPods: 1 });
});

test("admin policy details show each gate and the rejections of each rule", async () => {
  const policyId = await policyWithPods();
  const policy = await t.data("admin.getPolicy", { policyId });
  expect(policy.podList).toMatchObject([
    { podId: "shop/a", state: "updated", freshness: "Fresh", refused: 4 },
    { podId: "shop/b", state: "updated", region: "eu-1", release: "9.0.0", refused: 211 },
    { podId: "shop/newer", state: "unsupported", freshness: "Expired", reason: "format 2 is not known here" },
    { podId: "shop/old", state: "behind", freshness: "Stale" },
  ]);
  expect(policy.refusals).toEqual({
    since: 1_767_225_600_000,
    counts: [
      { rule: 0, code: "MISSING_KEY", count: 203 },
      { rule: -1, code: "NOT_FOUND", count: 10 },
    ],
    others: 2,
  });
  expect(policy.policy.mode).toBe("Enforce");
});

test("gate that hangs is shown as silent, with its last report, but a gate that shuts down is not", async () => {
  const { policyId } = await resources.policy();
  const ref = { workspaceId: t.workspace.id, policyId };
  const report = { ...ref, generation: 1, version: 1, stalenessMs: 20 };
  for (const podId of ["shop/hangs", "shop/leaves", "shop/works"]) await t.edge.pods.report({ ...report, podId });
  const { podList: before } = await t.data("admin.getPolicy", { policyId });
  t.advance(16_000);
  await t.edge.pods.remove({ ...ref, podId: "shop/leaves" });
  await t.edge.pods.report({ ...report, podId: "shop/works" });
  const { podList, dataPlane } = await t.data("admin.getPolicy", { policyId });
  expect(dataPlane).toMatchObject({ pods: 1, silent: 1, updated: 1, behind: 0, stale: 0 });
  expect(podList).toMatchObject([
    { podId: "shop/hangs", state: "silent", lastSeenAt: before[0].lastSeenAt },
    { podId: "shop/works", state: "updated" },
  ]);
  // The operator compares running pods with these, so a silent one must not count.
  expect((await t.data("policies.getPolicy", { policyId })).dataPlane).toMatchObject({
    pods: 1,
    podIds: ["shop/works"],
  });
  t.advance(600_000);
  expect((await t.data("admin.getPolicy", { policyId })).dataPlane).toMatchObject({ pods: 0, silent: 0 });
});

test("admin policy details show the names of the rules that reject requests", async () => {
  const rules: PolicyFields["rules"] = [{}, { name: "refund", access: "Deny", match: { methods: ["POST"] } }];
  const { policyId } = await resources.policy(undefined, { rules });
  await t.edge.pods.report({
    ...{ workspaceId: t.workspace.id, policyId, podId: "shop/a", generation: 1, version: 1, stalenessMs: 20 },
    refusals: refusals("Enforce", [1, "DENIED", 7], [0, "NOT_FOUND", 5], [-1, "NOT_FOUND", 3], [9, "NOT_FOUND", 1]),
  });
  expect((await t.data("admin.getPolicy", { policyId })).refusals.counts).toEqual([
    { rule: 1, ruleName: "refund", code: "DENIED", count: 7 },
    { rule: 0, code: "NOT_FOUND", count: 5 },
    { rule: -1, code: "NOT_FOUND", count: 3 },
    { rule: 9, code: "NOT_FOUND", count: 1 },
  ]);
});

test("admin policy details cap impossibly high counts that pods report", async () => {
  const { policyId } = await resources.policy();
  for (const podId of ["a", "b"]) {
    const report = { workspaceId: t.workspace.id, policyId, podId, generation: 1, version: 1, stalenessMs: 1 };
    await t.edge.pods.report({ ...report, refusals: refusals("Enforce", [0, "NOT_FOUND", Number.MAX_SAFE_INTEGER]) });
  }
  const { dataPlane, refusals: counted } = await t.data("admin.getPolicy", { policyId });
  expect(dataPlane.refused).toBe(Number.MAX_SAFE_INTEGER);
  expect(counted.counts[0].count).toBe(Number.MAX_SAFE_INTEGER);
});

test("pages of the admin policy list and search return each policy of the workspace exactly once", async () => {
  const own = await t.makeWorkspace();
  const theirs = resourcesOf(await t.makeWorkspace());
  await theirs.policy();
  const mine = resourcesOf(own);
  const apiId = await mine.api();
  for (let i = 0; i < 7; i++) {
    await t.data("managed.applyObject", policyBody(apiId, `${i < 3 ? "Orders" : "else"}-${i}`), {
      rootKey: own.rootKey,
    });
  }
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const { body } = await t.call("admin.listPolicies", { limit: 3, cursor }, { rootKey: own.rootKey });
    names.push(...body.data.map(({ name }: { name: string }) => name));
    cursor = body.pagination.cursor;
  } while (cursor !== undefined);
  expect(new Set(names).size).toBe(7);
  const found = await t.data("admin.listPolicies", { search: " orders-" }, { rootKey: own.rootKey });
  expect(found).toHaveLength(3);
  expect(await t.data("admin.listPolicies", { search: "%" }, { rootKey: own.rootKey })).toEqual([]);
});

test("admin policy list omits gates while Redis is unavailable", async () => {
  const broken = await buildTestApp({
    deps: ({ pods }) => ({ pods: { ...pods, listEach: () => Promise.reject(new Error("away")) } as never }),
  });
  try {
    const { policyId } = await makeResources(broken.deps.db, {
      workspaceId: broken.workspace.id,
      ask: (path, body) => broken.data(path, body),
    }).policy();
    const [row] = await broken.data("admin.listPolicies", {});
    expect(row).toMatchObject({ policyId });
    expect(row).not.toHaveProperty("dataPlane");
    expect((await broken.data("admin.getPolicy", { policyId })).podList).toEqual([]);
  } finally {
    await broken.close();
  }
});
