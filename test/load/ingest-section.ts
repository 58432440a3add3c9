import { readdirSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { Redis } from "ioredis";
import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { PostgresAnalytics } from "../../analytics/postgres/store.ts";
import { migrate } from "../../api-server/db/migrate.ts";
import { insertWorkspace } from "../../api-server/db/workspaces.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { createPool } from "../../postgres/pool.ts";
import { waitFor } from "../harness/wait.ts";
import { sendLoad } from "./generator.ts";
import { cpuMicros, median } from "./measure.ts";
import { CONNECTIONS, type Figure, type Section, timed } from "./section.ts";
import { seededKey, seedKeys } from "./seed.ts";
import { type Running, startIngest } from "./stack.ts";
import { addToStream, eventLines } from "./usage-events.ts";

/* Storing usage events: its rate, and what a verification loses by it. */

const KEYS = 10_000;
const BATCH = 1_250;
const PORTIONS = 32;

/** The rate of storing events, compared with a bare COPY of the same rows into the same table; with and without rolling up. */
export const ingest: Section = async (environment, { rounds, progress }) => {
  const databaseUrl = await environment.createDatabase("ingest");
  await migrate(databaseUrl);
  const db = createPool(databaseUrl, { connectionsMax: 4 });
  const workspaceId = "ws_bench";
  const open = (copies: boolean) =>
    new PostgresAnalytics({ db, nowMs: Date.now, log: pino({ level: "warn" }), metrics: new Registry(), copies });
  // As an ingest process does, with two readers, and as an api-server does.
  const [store, beside] = [open(true), open(false)];
  try {
    await insertWorkspace(db, { id: workspaceId, name: "bench", createdAt: 1 });
    const apiId = await seedKeys(databaseUrl, { workspaceId, count: KEYS });
    await store.maintain(Date.now());
    const file = `${(await db.query<{ data_directory: string }>("show data_directory")).rows[0]?.data_directory}/rows`;
    const ms = { stored: [] as number[], beside: [] as number[], rolledUp: [] as number[], copied: [] as number[] };
    // The first round is a warm-up: it also notes the first use of each key.
    for (let round = 0; round <= rounds; round += 1) {
      progress(`ingest: round ${round} of ${rounds}`);
      const portions = Array.from({ length: PORTIONS }, () =>
        eventLines({ workspaceId, apiId, keys: KEYS }, BATCH).join("\n"),
      );
      const storeBy = async (by: PostgresAnalytics, readers: number) => {
        await db.query("truncate verification_events, rollup_queue");
        const left = portions.values();
        return timed(() =>
          Promise.all(
            Array.from({ length: readers }, async () => {
              for (const lines of left) await by.ingest(new EventLines(workspaceId, lines), Date.now());
            }),
          ),
        );
      };
      const byStatement = await storeBy(beside, 1);
      const stored = await storeBy(store, 2);
      const rolledUp = await timed(async () => {
        while (await store.rollUp());
      });
      await db.query(`copy (select * from verification_events) to '${file}'`);
      await db.query("truncate verification_events");
      const copied = await timed(() => db.query(`copy verification_events from '${file}'`));
      if (round === 0) continue;
      ms.stored.push(stored);
      ms.beside.push(byStatement);
      ms.rolledUp.push(rolledUp);
      ms.copied.push(copied);
    }
    const perSecond = (all: readonly number[]) => ((1000 * PORTIONS * BATCH) / median(all)).toFixed(0);
    const ratios = ms.stored.map((each, n) => each / (ms.copied[n] ?? Number.NaN));
    const all = ms.stored.map((each, n) => each + (ms.rolledUp[n] ?? 0));
    const allRatios = all.map((each, n) => each / (ms.copied[n] ?? Number.NaN));
    return [
      {
        // Inverted, because every figure should be small: half the rate is twice the time.
        name: "time of storing events / bare COPY of their rows",
        unit: "ratio",
        value: median(ratios),
        max: 2,
        detail: `${perSecond(ms.stored)} and ${perSecond(ms.copied)} events/s, ${perSecond(ms.beside)} in an api-server, pairs ${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`,
      },
      {
        name: "the same with a roll-up of all of them",
        unit: "ratio",
        value: median(allRatios),
        max: 4,
        detail: `${perSecond(all)} events/s; the roll-up alone ${perSecond(ms.rolledUp)} events/s`,
      },
    ];
  } finally {
    await db.end();
  }
};

/** More than is stored during a measurement. */
const AHEAD = 120_000;

/** Verifications and their CPU while events are stored at full rate: by the api-server itself, and by a process of low priority. */
export const ingestBeside: Section = async (environment, { rounds, durationMs, progress }) => {
  let apiId = "";
  const stack = await environment.openSecond(
    "beside",
    async ({ databaseUrl, workspaceId }) => {
      apiId = await seedKeys(databaseUrl, { workspaceId, count: KEYS });
    },
    ["--ingest", "off"],
  );
  const redis = new Redis(stack.redisUrl);
  const db = createPool(stack.databaseUrl, { connectionsMax: 1 });
  try {
    const own = await startIngest(stack);
    lowerPriority(own.pid);
    const ingesting = await stack.startApiServer();
    const of = { workspaceId: stack.workspaceId, apiId, keys: KEYS };
    const stream = new RedisKeys().events(of.workspaceId);
    const load = ({ url }: Running) => ({
      url: `${url}/v2/keys.verifyKey`,
      method: "POST" as const,
      headers: { authorization: `Bearer ${stack.rootKey}`, "content-type": "application/json" },
      requests: Array.from({ length: 1000 }, (_, n) => ({ body: JSON.stringify({ key: seededKey(apiId, n) }) })),
      connections: CONNECTIONS,
      durationMs,
    });
    // Only one of them works at a time; the first api-server is the relay and is never stopped.
    const cases = [
      { name: "no ingestion", server: stack.apiServer, runs: [], backlog: false },
      { name: "its own ingestion", server: ingesting, runs: [ingesting], backlog: true },
      { name: "ingestion in another process", server: stack.apiServer, runs: [own], backlog: true },
    ];
    const cpu = new Map(cases.map(({ name }) => [name, [] as number[]]));
    const rate = new Map(cases.map(({ name }) => [name, [] as number[]]));
    const stored = new Map(cases.map(({ name }) => [name, [] as number[]]));
    for (let round = 0; round <= rounds; round += 1) {
      progress(`ingestBeside: round ${round} of ${rounds}`);
      for (const { name, server, runs, backlog } of round % 2 === 0 ? cases : cases.toReversed()) {
        for (const each of [own, ingesting]) process.kill(each.pid, runs.includes(each) ? "SIGCONT" : "SIGSTOP");
        if (backlog) await addToStream(redis, of, AHEAD);
        const [before, storedBefore] = [cpuMicros(server.pid), await countStored(db)];
        const { requests, requestsPerSecond } = await sendLoad(load(server));
        const [used, storedNow] = [cpuMicros(server.pid) - before, await countStored(db)];
        if (backlog) {
          if ((await redis.xlen(stream)) === 0) progress(`ingestBeside: the backlog of "${name}" was too short`);
          // If a process were stopped within a transaction, it would keep its locks.
          const isIdle = async () =>
            (await redis.xlen(stream)) === 0 && (await db.query("select from rollup_queue limit 1")).rowCount === 0;
          await waitFor("all events to be stored and rolled up", isIdle, { deadlineMs: 60_000 });
        }
        if (round === 0) continue;
        stored.get(name)?.push((1000 * (storedNow - storedBefore)) / durationMs);
        cpu.get(name)?.push(used / requests);
        rate.get(name)?.push(requestsPerSecond);
      }
    }
    for (const each of [own, ingesting]) process.kill(each.pid, "SIGCONT");
    const [none = "", ...others] = cases.map(({ name }) => name);
    const pairs = (of: Map<string, number[]>, name: string) =>
      (of.get(name) ?? []).map((each, round) => each / (of.get(none)?.[round] ?? Number.NaN));
    return others.flatMap((name, n): Figure[] => {
      const [with_, without] = [median(rate.get(name) ?? []), median(rate.get(none) ?? [])];
      return [
        {
          name: `verifications lost to ${name} at full rate`,
          unit: "%",
          value: 100 * (1 - median(pairs(rate, name))),
          max: n === 0 ? undefined : 20,
          detail: `${with_.toFixed(0)} and ${without.toFixed(0)} verifications/s on the cores that all share, ${median(stored.get(name) ?? []).toFixed(0)} events/s stored`,
        },
        {
          name: `CPU of a verification with ${name} / without`,
          unit: "ratio",
          value: median(pairs(cpu, name)),
          max: n === 0 ? 1.25 : 1.05,
          detail: "",
        },
      ];
    });
  } finally {
    redis.disconnect();
    await db.end();
    await stack.close();
  }
};

/** Gives all threads the priority of `nice -n 19`, because on Linux each thread has its own. */
function lowerPriority(pid: number): void {
  for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), constants.priority.PRIORITY_LOW);
}

async function countStored(db: Pool): Promise<number> {
  return (await db.query<{ n: number }>("select count(*)::int as n from verification_events")).rows[0]?.n ?? 0;
}
