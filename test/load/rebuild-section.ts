import { Redis } from "ioredis";
import pg from "pg";
import { GLOBAL, RedisKeys } from "../../edge/redis/keys.ts";
import { freePort } from "../harness/ports.ts";
import { waitFor } from "../harness/wait.ts";
import { drawCurves } from "./curves.ts";
import { createPolicy, type Environment, startSidecar } from "./environment.ts";
import { redisNumber } from "./measure.ts";
import type { Figure, Section } from "./section.ts";
import { seededKey, seedKeys } from "./seed.ts";
import type { Running, Stack } from "./stack.ts";

/* Redis loses everything while a pod serves: how long the new projection takes, and what the pod's clients notice. */

const CACHED = 100;
/** Between two checks of the pod. */
const POLL_MS = 50;
/** A million keys in a minute, and at least as long as an api-server needs to notice. */
const boundS = (keys: number): number => Math.max(10, (60 * keys) / 1_000_000);

/** Observations between the loss and the end of the new projection. */
interface Seen {
  readonly keys: number;
  readonly postgresBytes: number;
  readonly redisBytes: number;
  tookS: number;
  stalestS: number;
  /** Number of responses by status. */
  readonly cached: Map<number, number>;
  readonly uncached: Map<number, number>;
}

export const rebuild: Section = async (environment, { storedKeys, pictures, progress }) => {
  const all: Seen[] = [];
  for (const keys of storedKeys) all.push(await measure(environment, keys, progress));
  if (pictures) await draw(all);
  return all.flatMap(toFigures);
};

async function measure(environment: Environment, keys: number, progress: (line: string) => void): Promise<Seen> {
  let apiId = "";
  const stack = await environment.openSecond(`rebuild${keys}`, async ({ databaseUrl, workspaceId }) => {
    apiId = await seedKeys(databaseUrl, { workspaceId, count: keys });
    progress(`rebuild: ${keys} keys seeded`);
  });
  const redis = new Redis(stack.redisUrl);
  try {
    const untilWhole = () => untilComplete(redis, 10_000 * boundS(keys));
    await untilWhole();
    progress("rebuild: projected for the first time");
    const pod = await startPod(stack, apiId, environment.upstream);
    const seen: Seen = {
      ...{ keys, tookS: 0, stalestS: 0, cached: new Map(), uncached: new Map() },
      postgresBytes: await tableBytes(stack.databaseUrl),
      redisBytes: await redisNumber(redis, "memory", "used_memory"),
    };
    for (let n = 0; n < CACHED; n += 1) {
      const status = await pod.ask(seededKey(apiId, n));
      if (status !== 200) throw new Error(`a seeded key got ${status}`);
    }
    const startedAt = performance.now();
    // Without ASYNC, Redis frees the memory of all keys before it answers anyone.
    await redis.flushall("ASYNC");
    let isComplete = false;
    const whole = untilWhole().then(() => {
      isComplete = true;
      seen.tookS = (performance.now() - startedAt) / 1000;
    });
    for (let n = CACHED; !isComplete; n += 1) {
      count(seen.cached, await pod.ask(seededKey(apiId, n % CACHED)));
      count(seen.uncached, await pod.ask(seededKey(apiId, n % keys)));
      seen.stalestS = Math.max(seen.stalestS, await pod.stalenessS());
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    await whole;
    return seen;
  } finally {
    redis.disconnect();
    await stack.close();
  }
}

function toFigures({ keys, postgresBytes, redisBytes, tookS, stalestS, cached, uncached }: Seen): Figure[] {
  const refused = (cached.get(401) ?? 0) + (uncached.get(401) ?? 0);
  const responds = (statuses: Map<number, number>) => [...statuses].map(([code, n]) => `${n} × ${code}`).join(", ");
  const name = `${keys} keys`;
  const stored = [
    `${(postgresBytes / 1e6).toFixed(0)} MB in Postgres (${(postgresBytes / keys).toFixed(0)} bytes a key)`,
    `${(redisBytes / 1e6).toFixed(0)} MB in Redis (${(redisBytes / keys).toFixed(0)} bytes a key)`,
  ];
  return [
    {
      name: `${name} projected again after a loss of Redis`,
      unit: "s",
      value: tookS,
      max: boundS(keys),
      detail: stored.join(", "),
    },
    { name: `${name}: staleness of a pod meanwhile, at most`, unit: "s", value: stalestS, max: 5, detail: "" },
    {
      name: `${name}: good keys that were refused meanwhile`,
      unit: "responses",
      value: refused,
      max: 0,
      detail: `known to the pod: ${responds(cached)}; not known: ${responds(uncached)}`,
    },
  ];
}

async function draw(all: readonly Seen[]): Promise<void> {
  const x = { label: "keys", values: all.map(({ keys }) => keys) };
  await drawCurves("stored-keys", [
    {
      title: "Memory and disk",
      isLogarithmic: true,
      x,
      curves: [
        { label: "Postgres, MB", values: all.map(({ postgresBytes }) => postgresBytes / 1e6) },
        { label: "Redis, MB", values: all.map(({ redisBytes }) => redisBytes / 1e6) },
      ],
    },
    {
      title: "Projection after a loss of Redis",
      isLogarithmic: true,
      x,
      curves: [
        { label: "until complete, s", values: all.map(({ tookS }) => tookS) },
        { label: "greatest staleness of a pod, s", values: all.map(({ stalestS }) => stalestS) },
      ],
    },
  ]);
}

/** The keys with their indexes. */
async function tableBytes(databaseUrl: string): Promise<number> {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    const text = "select pg_total_relation_size('keys')::float8 as bytes";
    return (await db.query<{ bytes: number }>(text)).rows[0]?.bytes ?? Number.NaN;
  } finally {
    await db.end();
  }
}

const count = (statuses: Map<number, number>, status: number) => statuses.set(status, (statuses.get(status) ?? 0) + 1);

const untilComplete = (redis: Redis, deadlineMs: number): Promise<unknown> =>
  waitFor(
    "everything to be projected",
    async () => (await redis.hget(new RedisKeys().projectionState(GLOBAL), "complete")) === "1",
    { deadlineMs, everyMs: 200 },
  );

async function startPod(stack: Stack, apiId: string, upstream: Running) {
  const policyId = await createPolicy(stack, { apiId, name: "rebuild", ratelimits: [] });
  const adminPort = await freePort();
  const { url } = await startSidecar(stack, { policyId, upstream, adminPort });
  const admin = (path: string) => fetch(`http://127.0.0.1:${adminPort}${path}`);
  await waitFor("the pod to be ready", async () => (await admin("/readyz")).ok);
  return {
    ask: async (key: string): Promise<number> => {
      const response = await fetch(`${url}/`, { headers: { authorization: `Bearer ${key}` } });
      await response.arrayBuffer();
      return response.status;
    },
    stalenessS: async (): Promise<number> => {
      const text = await (await admin("/metrics")).text();
      return Number(/^postern_sidecar_staleness_seconds (\S+)$/m.exec(text)?.[1] ?? Number.NaN);
    },
  };
}
