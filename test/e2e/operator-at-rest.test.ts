import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { conditionOf, openDirectoryWorld, operatorOf, statusIn, type TestManifest } from "./operator-world.ts";

/* Load of an idle operator on the api-server, and its delay in detecting changes. */

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

/** Reports as a gate of each policy does: every 5 s with the stored version. */
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

/** Returns the number of calls served by the api-server, from its metrics. */
async function calls(): Promise<number> {
  const text = await (await fetch(`${world.server.url}/metrics`)).text();
  const counts = [...text.matchAll(/^postern_api_requests_total\{.*\} (\d+)$/gm)].map(([, count]) => Number(count));
  return counts.reduce((sum, count) => sum + count, 0);
}

test("idle operator polls all policies of a workspace in one request and writes no status", async () => {
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

const others: readonly TestManifest[] = [
  ...Array.from({ length: 25 }, (_, i) => ({
    kind: "Role",
    metadata: { name: `o${i}`, namespace: "shop" },
    spec: { name: `role-${i}`, permissions: ["orders.read"] },
  })),
  ...Array.from({ length: 25 }, (_, i) => ({
    kind: "RatelimitNamespace",
    metadata: { name: `o${i}`, namespace: "shop" },
    spec: { name: `limits-${i}` },
  })),
  ...Array.from({ length: 25 }, (_, i) => ({
    kind: "RatelimitOverride",
    metadata: { name: `o${i}`, namespace: "shop" },
    spec: { namespaceRef: { name: `o${i % 3}` }, identifier: `id-${i}`, limit: 5, duration: "1m" },
  })),
];

test("operator compares other kinds by digest lists and corrects differences", async () => {
  const second = await openDirectoryWorld();
  await second.operator.close();
  const { dir, stateDir } = second;
  for (const manifest of others) await second.apply(manifest);
  const resyncMs = 6_000;
  const running = await operatorOf(second, { kind: "directory", dir, stateDir }, { resyncMs });
  try {
    const stateOf = ({ kind, metadata }: TestManifest) =>
      conditionOf(statusIn(running, kind, metadata), "Ready")?.status;
    await waitFor("all to be Ready", async () => others.every((one) => stateOf(one) === "True"), {
      deadlineMs: 60_000,
    });
    const counts = async () => {
      const text = await (await fetch(`${second.server.url}/metrics`)).text();
      const of = (procedure: RegExp) =>
        [...text.matchAll(/^postern_api_requests_total\{(.*)\} (\d+)$/gm)]
          .filter(([, labels = ""]) => procedure.test(labels))
          .reduce((sum, [, , count]) => sum + Number(count), 0);
      return { all: of(/./), lists: of(/listDigests/) };
    };
    const from = await counts();
    // Two resync periods, within which each object is due.
    await sleep(2 * resyncMs + 1_000);
    const to = await counts();
    expect(to.lists - from.lists).toBeGreaterThanOrEqual(3);
    // Separate calls would be about 600. A stalled machine may make some objects due.
    expect(to.all - to.lists - (from.all - from.lists)).toBeLessThanOrEqual(60);

    // Changes the database directly.
    const { db } = second.server.deps;
    await db.query("update roles set description = 'Not as written.' where name = 'role-7'");
    await db.query("update ratelimit_overrides set max_count = 99 where identifier = 'id-8'");
    await db.query("update ratelimit_namespaces set deleted_at = 1 where name = 'limits-9'");
    const wrong = async () => {
      const { rows } = await db.query<{ count: number }>(
        `select (select count(*) from roles where description is not null)
              + (select count(*) from ratelimit_overrides where max_count = 99 and deleted_at is null)
              + (select 1 - count(*) from ratelimit_namespaces where name = 'limits-9' and deleted_at is null) as count`,
      );
      return Number(rows[0]?.count);
    };
    expect(await wrong()).toBe(3);
    await waitFor("all three to be as written", async () => (await wrong()) === 0, { deadlineMs: 30_000 });
  } finally {
    await running.close();
    await second.close();
  }
}, 180_000);

test("operator reverts drift from API calls without waiting for a resync", async () => {
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

test("manifest change is reported as enforced within seconds", async () => {
  const [, policy] = policies;
  if (policy === undefined) throw new Error("there is one policy");
  await world.apply({ ...policy, spec: { ...policy.spec, mode: "Audit" } });
  const { policyVersion } = statusOf(policy) ?? {};
  await waitFor("the next version", async () => statusOf(policy)?.policyVersion !== policyVersion);
  await waitFor("it to be enforced", async () => conditionOf(statusOf(policy), "Enforced")?.status === "True", {
    deadlineMs: 15_000,
  });
}, 60_000);
