import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { anEvent } from "../../test/contracts/edge/an-event.ts";
import { aName } from "../../test/contracts/edge/edges.ts";
import { createTestRedis, type TestRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { createLoopFailures } from "../background/loop.ts";
import { startIngestion } from "./ingestion.ts";

/* Pauses between the batches of a reader. The store is a function here, because the test sets how long it takes. */

const STORING_MS = 300;
/** Entries of a batch, if they are small. */
const BATCH_ENTRIES = 500;
const BATCHES = 3;
const BYTES_MAX = 64 * 1024 * 1024;

let testRedis: TestRedis;
let raw: Redis;
let keys: RedisKeys;
let edge: Edge;
beforeAll(async () => {
  testRedis = await createTestRedis();
  raw = new Redis(testRedis.url);
  keys = new RedisKeys(testRedis.prefix);
  edge = await openRedisEdge({ url: testRedis.url, prefix: testRedis.prefix, clientName: "pace-test" });
});
afterAll(async () => {
  await edge.close();
  raw.disconnect();
  await testRedis.close();
});

/** Ingests three batches. Returns the pauses between them in ms. The first entry is as old as `ageMs`. */
async function pausesOf({ ageMs = 0, capacityBytes = BYTES_MAX }): Promise<number[]> {
  const workspaceId = aName("ws");
  await raw.set(keys.eventsQuota(workspaceId), capacityBytes);
  const pipeline = raw.pipeline();
  for (let n = 0; n < BATCHES * BATCH_ENTRIES; n++) {
    const event = JSON.stringify(anEvent({ workspaceId, timeMs: Date.now() }));
    pipeline.xadd(keys.events(workspaceId), `${Date.now() - ageMs}-${n}`, "e", event);
  }
  await pipeline.exec();
  const batches: { startMs: number; endMs: number }[] = [];
  const metrics = new Registry();
  const ingestion = await startIngestion({
    store: {
      ingest: async () => {
        const startMs = performance.now();
        await sleep(STORING_MS);
        batches.push({ startMs, endMs: performance.now() });
        return { stored: BATCH_ENTRIES, late: 0, omitted: 0 };
      },
      rollUp: async () => false,
      maintain: async () => false,
    },
    sources: [edge.events],
    bytesMax: BYTES_MAX,
    workspaceIds: () => [workspaceId],
    nowMs: Date.now,
    log: pino({ level: "silent" }),
    failures: createLoopFailures(metrics),
    metrics,
  });
  try {
    await waitFor("all batches", () => Promise.resolve(batches.length === BATCHES));
  } finally {
    await Promise.all(ingestion.loops.map((loop) => loop.close()));
  }
  return batches.slice(1).map(({ startMs }, n) => startMs - (batches[n]?.endMs ?? Number.NaN));
}

test("ingestion pauses after each batch for three times its duration", async () => {
  for (const pauseMs of await pausesOf({})) expect(pauseMs).toBeGreaterThanOrEqual(3 * STORING_MS - 10);
});

test.each([
  { why: "the oldest event has waited for ten seconds", given: { ageMs: 10_000 } },
  { why: "events use half of their quota", given: { capacityBytes: 200 * 1024 } },
])("ingestion does not pause while $why", async ({ given }) => {
  // The next pause may be a long one, because quotas are distributed after a second.
  const [pauseMs] = await pausesOf(given);
  expect(pauseMs).toBeLessThan(2 * STORING_MS);
});
