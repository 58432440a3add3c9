import { expect, test } from "vitest";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { waitFor } from "../harness/wait.ts";
import { eventLines } from "../load/usage-events.ts";
import { openSystem, type System } from "./system.ts";

/* Separate processes store and count usage events. */

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

async function counted(system: System): Promise<number> {
  const text = "select coalesce(sum(count), 0)::integer as count from verification_counts_day";
  return (await system.db.query<{ count: number }>(text)).rows[0]?.count ?? 0;
}

test("api-server without ingestion relies on ingest processes, which fail over", async () => {
  const system = await openSystem();
  const api = await system.spawnApi({ POSTERN_INGEST: "off" });
  const { apiId } = await api.data("apis.createApi", { name: "payments" });
  const { key } = await api.data("keys.createKey", { apiId });
  const verify = async (times: number) => {
    for (let i = 0; i < times; i++) expect((await api.data("keys.verifyKey", { key })).code).toBe("VALID");
  };
  await verify(3);
  const stream = async () => (await system.raw.keys(`${system.prefix}*:events`)).length;
  await waitFor("the events to be in the stream", async () => (await stream()) === 1);
  expect(await counted(system)).toBe(0);
  expect(await metric(api.url, "postern_events_stored_total")).toBeNaN();

  const [first, second] = [await system.spawnIngest(), await system.spawnIngest()];
  await waitFor("the events to be counted", async () => (await counted(system)) === 3);
  for (const each of [first, second]) expect((await fetch(`${each.adminUrl}/readyz`)).status).toBe(200);
  expect((await fetch(`${first.adminUrl}/livez`)).status).toBe(200);
  expect((await fetch(`${first.adminUrl}/v2/liveness`)).status).toBe(404);

  first.process.kill("SIGKILL");
  await first.process.exited;
  await verify(4);
  // The pending events of a killed process are claimed after a minute; here it had none.
  await waitFor("the events to be counted", async () => (await counted(system)) === 7);
  const stored = await metric(second.adminUrl, "postern_events_stored_total");
  expect(stored).toBeGreaterThanOrEqual(4);
  expect(await metric(second.adminUrl, "postern_rollup_events_total")).toBeGreaterThanOrEqual(4);
  expect(await metric(second.adminUrl, "postern_events_lag_seconds")).toBe(0);
  expect(await second.process.stop()).toEqual({ code: 0, signal: null });
}, 60_000);

test("api-server and ingest process together count each event once", async () => {
  const system = await openSystem();
  const api = await system.spawnApi();
  await system.spawnIngest();
  const { apiId } = await api.data("apis.createApi", { name: "payments" });
  const { key } = await api.data("keys.createKey", { apiId });
  for (let i = 0; i < 60; i++) await api.data("keys.verifyKey", { key });
  await waitFor("the events to be counted", async () => (await counted(system)) >= 60);
  expect(await counted(system)).toBe(60);
}, 60_000);

test("ingestion drains a backlog with little memory while new events arrive", async () => {
  const system = await openSystem();
  await system.spawnApi({ POSTERN_INGEST: "off" });
  const of = { workspaceId: await system.workspaceId(), apiId: "api_1", keys: 500 };
  const stream = new RedisKeys(system.prefix).events(of.workspaceId);
  let added = 0;
  const add = async (events: number) => {
    for (let made = 0; made < events; made += 100) {
      await system.raw.xadd(stream, "*", "e", eventLines(of, 100).join("\n"));
      added += 100;
    }
  };
  await add(24_000);
  const ingest = await system.spawnIngest({ NODE_OPTIONS: "--max-old-space-size=64" });
  await waitFor(
    "half of it to be counted",
    async () => {
      await add(200);
      return (await counted(system)) > 12_000;
    },
    { deadlineMs: 90_000, everyMs: 250 },
  );
  await waitFor("all of it to be counted", async () => (await counted(system)) === added, { deadlineMs: 90_000 });
  expect(await system.raw.xlen(stream)).toBe(0);
  const waiting = () => metric(ingest.adminUrl, "postern_rollup_waiting_events");
  await waitFor("the metric to say so", async () => (await waiting()) === 0);
  expect(await ingest.process.stop()).toEqual({ code: 0, signal: null });
}, 240_000);
