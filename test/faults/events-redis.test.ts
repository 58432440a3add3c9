import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { startOwnRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { spawnGate } from "./gate-process.ts";
import { openSystem } from "./system.ts";

test("separate events Redis holds all events, and its loss affects only events", async () => {
  const system = await openSystem({ ownRedis: true });
  const events = await startOwnRedis();
  onTestFinished(() => events.stop());
  const ofEvents = new Redis(events.url, { retryStrategy: () => 50 }).on("error", () => undefined);
  onTestFinished(() => ofEvents.disconnect());
  const env = { EVENTS_REDIS_URL: events.url };

  const api = await system.spawnApi(env);
  const { apiId, key, keyId } = await makeKey(api, {
    credits: { remaining: 1_000 },
    ratelimits: [{ name: "all", limit: 1_000, duration: 3_600_000, autoApply: true }],
  });
  const gate = await spawnGate(system, api, { apiId, env });
  const sources = async () => {
    const text = "select distinct source from verification_events where key_id = $1 order by 1";
    const { rows } = await system.db.query<{ source: string }>(text, [keyId]);
    return String(rows.map(({ source }) => source));
  };
  await waitFor("the key to be served", async () => (await gate.status(key)) === 200);
  expect(await api.code(key)).toBe("VALID");
  await waitFor("an event of each to be stored", async () => (await sources()) === "api,sidecar");
  expect((await system.raw.keys("*")).filter((name) => name.includes(":events"))).toEqual([]);
  const workspaceId = await system.workspaceId();
  const names = (await ofEvents.keys("*")).sort();
  expect(names.filter((name) => !name.includes(":events"))).toEqual([]);
  expect(names).toContain(`t:${workspaceId}:events`);

  await events.kill("SIGKILL");
  for (let i = 0; i < 20; i++) expect(await gate.status(key)).toBe(200);
  expect(await api.code(key)).toBe("VALID");
  expect(await api.isReady()).toBe(true);

  const before = await system.db.query("select from verification_events");
  await events.restart();
  await waitFor(
    "what waited meanwhile to be stored",
    async () =>
      ((await system.db.query("select from verification_events")).rowCount ?? 0) >= (before.rowCount ?? 0) + 21,
    { deadlineMs: 20_000 },
  );
});
