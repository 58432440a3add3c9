import { Redis } from "ioredis";
import pg from "pg";
import { utcDate } from "../../core/utc-date.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { checkUsage } from "./check-usage.ts";
import { peakResidentMb, redisNumber, residentMb } from "./measure.ts";
import type { Figure, Section } from "./section.ts";
import { seedKeys } from "./seed.ts";
import { startIngest } from "./stack.ts";
import { addToStream } from "./usage-events.ts";

/* A backlog of usage events after ingestion was down, while new ones arrive. */

const KEYS = 10_000;
const NEW_PER_SECOND = 500;
const TURN_MS = 500;
const DEADLINE_S = 1800;
/** Of the streams and of what is stored: enough for any backlog that is asked for. */
const EVENTS_MEMORY_MB = "4096";

/** How much memory it takes until all are stored and counted; fails when any event is lost or counted twice. */
export const backlog: Section = async (environment, { backlogEvents, progress }) => {
  let apiId = "";
  const stack = await environment.openSecond(
    "backlog",
    async ({ databaseUrl, workspaceId }) => {
      apiId = await seedKeys(databaseUrl, { workspaceId, count: KEYS });
    },
    ["--ingest", "off"],
  );
  const redis = new Redis(stack.redisUrl);
  const db = new pg.Client({ connectionString: stack.databaseUrl });
  await db.connect();
  try {
    const of = { workspaceId: stack.workspaceId, apiId, keys: KEYS };
    const fromMs = Date.now();
    const add = (count: number) => addToStream(redis, of, count);
    await add(backlogEvents);
    const redisMb = (await usedMemory(redis)) / 1e6;
    progress(`backlog: ${backlogEvents} events wait, Redis uses ${redisMb.toFixed(0)} MB`);
    const ingesting = await startIngest(stack, ["--events-memory", EVENTS_MEMORY_MB]);
    const idleMb = residentMb(ingesting.pid);
    const startedAt = performance.now();
    const seconds = () => (performance.now() - startedAt) / 1000;

    const stream = new RedisKeys().events(of.workspaceId);
    let added = backlogEvents;
    let redisPeakMb = redisMb;
    for (let turn = 0; (await redis.xlen(stream)) > 0; turn += 1) {
      if (seconds() > DEADLINE_S) throw new Error(`after ${DEADLINE_S} s ${await redis.xlen(stream)} entries wait`);
      // As many as are due: a turn takes longer on a busy machine.
      const due = Math.round(seconds() * NEW_PER_SECOND) - (added - backlogEvents);
      await add(due);
      added += due;
      redisPeakMb = Math.max(redisPeakMb, (await usedMemory(redis)) / 1e6);
      if (turn % 20 === 0)
        progress(`backlog: ${await redis.xlen(stream)} entries wait after ${seconds().toFixed(0)} s`);
      await new Promise((done) => setTimeout(done, TURN_MS));
    }
    const drainedS = seconds();
    while ((await counted(db)) < added) {
      if (seconds() > DEADLINE_S) throw new Error(`after ${DEADLINE_S} s ${await counted(db)} of ${added} are counted`);
      await new Promise((done) => setTimeout(done, TURN_MS));
    }
    const countedS = seconds();
    const peakMb = peakResidentMb(ingesting.pid);

    await checkStored(db, added);
    const days = [...new Set([fromMs, Date.now()].map(utcDate))].map((date) => Date.parse(date));
    progress(`backlog: ${await checkUsage(db, { workspaceId: of.workspaceId, apiId, days })}`);
    const detail = [
      `${idleMb.toFixed(0)} MB after its start`,
      `stored after ${drainedS.toFixed(0)} s (${(added / drainedS).toFixed(0)} events/s), in all rollups after ${countedS.toFixed(0)} s`,
      `${added - backlogEvents} new ones meanwhile; each stored and counted once`,
      `Redis ${redisMb.toFixed(0)} MB, at most ${redisPeakMb.toFixed(0)}`,
    ].join(", ");
    const figure: Figure = {
      name: `a backlog of ${backlogEvents} events: peak memory`,
      unit: "MB",
      value: peakMb,
      max: 300,
      detail,
    };
    return [figure];
  } finally {
    redis.disconnect();
    await db.end();
    await stack.close();
  }
};

const usedMemory = (redis: Redis): Promise<number> => redisNumber(redis, "memory", "used_memory");

async function counted(db: pg.Client): Promise<number> {
  const text = "select coalesce(sum(count), 0)::int as count from verification_counts_month";
  return (await db.query<{ count: number }>(text)).rows[0]?.count ?? 0;
}

async function checkStored(db: pg.Client, added: number): Promise<void> {
  const { rows } = await db.query<{ stored: number; different: number }>(
    "select count(*)::int as stored, count(distinct id)::int as different from verification_events",
  );
  const { stored = 0, different = 0 } = rows[0] ?? {};
  if (stored !== added || different !== added) {
    throw new Error(`${added} events were added, ${stored} are stored, ${different} of them different`);
  }
}
