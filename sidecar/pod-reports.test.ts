import { expect, onTestFinished, test } from "vitest";
import { RELEASE } from "../core/release.ts";
import {
  aPolicy,
  aRule,
  call,
  type GateOptions,
  openGate,
  POLICY,
  type TestGate,
  WORKSPACE,
  waitFor,
  withKey,
} from "../test/harness/gate.ts";

/* Opens a gate whose pod reports the control plane lists. */

const open = async (policy: NonNullable<GateOptions["policy"]>): Promise<TestGate> => {
  const gate = await openGate({ policy, timeouts: { reportMs: 20 }, config: { region: "eu-1" } });
  onTestFinished(() => gate.close());
  return gate;
};

const listed = async ({ edge }: TestGate) => (await edge.pods.list({ workspaceId: WORKSPACE, policyId: POLICY }))[0];

const counted = (gate: TestGate, total: number) =>
  waitFor(`${total} counted refusals`, async () => {
    const report = await listed(gate);
    const sum = report?.refusals?.counts.reduce((all, { count }) => all + count, 0);
    return sum === total ? report : undefined;
  });

const HEALTHZ = aRule({ path: { prefix: "/healthz" }, access: "Anonymous" });
const WRITES = aRule({ path: { prefix: "/orders" }, permissions: "orders.write" });

/**
 * Sends two requests without a key that match no rule, one with an unknown key and two without the permission at rule 1, and one with a
 * rejected path.
 */
async function sendRefused({ port, records }: TestGate): Promise<void> {
  const key = await records.putKey();
  for (const path of ["/", "/else"]) await call(port, { path });
  await call(port, { path: "/orders", ...withKey("unknown") });
  for (const path of ["/orders", "/orders/1"]) await call(port, { path, ...withKey(key) });
  await call(port, { path: "/a//b" });
  // Neither of these requests is rejected.
  await call(port, { path: "/healthz" });
  await call(port, { path: "/", ...withKey(key) });
}

const EXPECTED = [
  { rule: -1, code: "MISSING_KEY", count: 2 },
  { rule: 1, code: "INSUFFICIENT_PERMISSIONS", count: 2 },
  { rule: -2, code: "MALFORMED", count: 1 },
  { rule: 1, code: "NOT_FOUND", count: 1 },
];

test.each(["Enforce", "Audit"] as const)("gate reports rejections by policy rule and code in mode %s", async (mode) => {
  const gate = await open({ mode, rules: [HEALTHZ, WRITES] });
  await sendRefused(gate);
  const report = await counted(gate, 6);
  expect(report).toMatchObject({ region: "eu-1", release: RELEASE, refusals: { mode, counts: EXPECTED, others: 0 } });
  expect(Math.abs((report.refusals?.sinceMs ?? 0) - Date.now())).toBeLessThan(60_000);
});

test("gate resets its rejection counts when the policy changes", async () => {
  const gate = await open({ rules: [HEALTHZ, WRITES] });
  await sendRefused(gate);
  const { refusals: before } = await counted(gate, 6);
  await gate.records.putPolicy(aPolicy({ rules: [WRITES] }));
  const after = await counted(gate, 0);
  expect(after.generation).toBe(2);
  expect(after.refusals?.sinceMs).toBeGreaterThanOrEqual(before?.sinceMs ?? Number.NaN);
  await call(gate.port, { path: "/orders" });
  expect((await counted(gate, 1)).refusals?.counts).toEqual([{ rule: 0, code: "MISSING_KEY", count: 1 }]);
});

test("gate reports the largest rejection counts by rule and adds up all others", async () => {
  const rules = Array.from({ length: 40 }, (_, i) => aRule({ path: { exact: `/${i}` } }));
  const gate = await open({ rules });
  for (let i = 0; i < 40; i++) for (let n = 0; n < (i >= 38 ? 3 : 1); n++) await call(gate.port, { path: `/${i}` });
  const report = await waitFor("all counts", async () => {
    const one = await listed(gate);
    const named = one?.refusals?.counts.reduce((all, { count }) => all + count, 0) ?? 0;
    return named + (one?.refusals?.others ?? 0) === 44 ? one : undefined;
  });
  expect(report.refusals).toMatchObject({ others: 8 });
  expect(report.refusals?.counts).toHaveLength(32);
  expect(report.refusals?.counts.slice(0, 2).map(({ rule, count }) => [rule, count])).toEqual([
    [38, 3],
    [39, 3],
  ]);
});

test("gate reports the upstream port of its own pod", async () => {
  const gate = await open({});
  const report = await waitFor("a report", () => listed(gate));
  expect(report.upstreamPort).toBe(Number(new URL(gate.app.url).port));
});
