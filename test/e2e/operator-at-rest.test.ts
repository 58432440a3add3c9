import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { conditionOf, openDirectoryWorld, operatorOf, statusIn, type TestManifest } from "./operator-world.ts";

/* What an operator costs the api-server while nothing changes, and how soon it sees what does. */

const POLICIES = 60;
const WINDOW_MS = 20_000;

let world: Awaited<ReturnType<typeof openDirectoryWorld>>;
let operator: Awaited<ReturnType<typeof operatorOf>>;
let reporting: NodeJS.Timeout;
const policies: TestManifest[] = Array.from({ length: POLICIES }, (_, i) => ({
  kind: "ApiKeyPolicy",
  metadata: { name: `p${i}`, namespace: "shop" },
  spec: { api: { name: `api-${i}` }, target: { port: 80 } },
}));

/** As a sidecar of each policy would: every 5 s, with the version that is stored. */
async function report(): Promise<void> {
  const { db, pods } = world.server.deps;
  const { rows } = await db.query<{ id: string; workspace_id: string; version: number }>(
    "select id, workspace_id, version from policies",
  );
  for (const { id, workspace_id: workspaceId, version } of rows) {
    await pods.report({ workspaceId, policyId: id, podId: "shop/pod", generation: 1, version, stalenessMs: 20 });
  }
}

beforeAll(async () => {
  world = await openDirectoryWorld();
  await world.operator.close();
  for (const policy of policies) await world.apply(policy);
  const { dir, stateDir } = world;
  operator = await operatorOf(world, { kind: "directory", dir, stateDir }, { resyncMs: 300_000 });
  reporting = setInterval(() => void report(), 5_000);
  await operator.ready();
  await report();
}, 120_000);
afterAll(async () => {
  clearInterval(reporting);
  await operator?.close();
  await world?.close();
});

const statusOf = ({ kind, metadata }: TestManifest) => statusIn(operator, kind, metadata);
const statuses = () => policies.map((policy) => JSON.stringify(statusOf(policy)));
const areEnforced = () => policies.every((policy) => conditionOf(statusOf(policy), "Enforced")?.status === "True");

/** How many calls the api-server answered so far, by its own metrics. */
async function calls(): Promise<number> {
  const text = await (await fetch(`${world.server.url}/metrics`)).text();
  const counts = [...text.matchAll(/^postern_api_requests_total\{.*\} (\d+)$/gm)].map(([, count]) => Number(count));
  return counts.reduce((sum, count) => sum + count, 0);
}

test("at rest it asks once for all policies of a workspace, however many they are, and writes no status", async () => {
  await waitFor("every policy to be enforced", async () => areEnforced(), { deadlineMs: 60_000 });
  const before = statuses();
  const from = await calls();
  await sleep(WINDOW_MS);
  const asked = (await calls()) - from;
  console.info(`${POLICIES} policies at rest: ${(asked / (WINDOW_MS / 1000)).toFixed(1)} calls/s`);
  expect(asked).toBeGreaterThan(0);
  expect(asked).toBeLessThanOrEqual(4);
  expect(statuses()).toEqual(before);
}, 120_000);

test("what an API call changes in the store is set right without waiting for a resync", async () => {
  await waitFor("every policy to be enforced", async () => areEnforced(), { deadlineMs: 60_000 });
  const [policy] = policies;
  if (policy === undefined) throw new Error("there are no policies");
  const { apiId } = statusOf(policy) ?? {};
  const headers = { "postern-manager": "test/ApiKeyPolicy/shop/p0" };
  expect(await world.call("apis.updateApi", { apiId, name: "renamed" }, headers)).toMatchObject({ status: 200 });
  await waitFor(
    "the API to have its name again",
    async () => (await world.call("apis.getApi", { apiId })).data.name === "api-0",
    { deadlineMs: 30_000 },
  );
}, 60_000);

test("a change of a manifest is enforced in its status within seconds", async () => {
  const [, policy] = policies;
  if (policy === undefined) throw new Error("there is one policy");
  await world.apply({ ...policy, spec: { ...policy.spec, mode: "Audit" } });
  const { policyVersion } = statusOf(policy) ?? {};
  await waitFor("the next version", async () => statusOf(policy)?.policyVersion !== policyVersion);
  await waitFor("it to be enforced", async () => conditionOf(statusOf(policy), "Enforced")?.status === "True", {
    deadlineMs: 15_000,
  });
}, 60_000);
