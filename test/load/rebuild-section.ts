import { Redis } from "ioredis";
import { GLOBAL, RedisKeys } from "../../edge/redis/keys.ts";
import { freePort } from "../harness/ports.ts";
import { waitFor } from "../harness/wait.ts";
import { createPolicy, startSidecar } from "./environment.ts";
import type { Figure, Section } from "./section.ts";
import { seededKey, seedKeys } from "./seed.ts";
import type { Running, Stack } from "./stack.ts";

/* Redis loses everything while a pod serves: how long the new projection takes, and what the pod's clients notice. */

const KEYS = 1_000_000;
const CACHED = 100;
/** Between two checks of the pod. */
const POLL_MS = 50;
const DEADLINE_MS = 600_000;

/** Observations between the loss and the end of the new projection. */
interface Seen {
  tookMs: number;
  stalestS: number;
  /** Number of responses by status. */
  readonly cached: Map<number, number>;
  readonly uncached: Map<number, number>;
}

export const rebuild: Section = async (environment, { progress }) => {
  let apiId = "";
  const stack = await environment.openSecond("rebuild", async ({ databaseUrl, workspaceId }) => {
    apiId = await seedKeys(databaseUrl, { workspaceId, count: KEYS });
    progress(`rebuild: ${KEYS} keys seeded`);
  });
  const redis = new Redis(stack.redisUrl);
  try {
    await untilWhole(redis);
    progress("rebuild: projected for the first time");
    const pod = await startPod(stack, apiId, environment.upstream);
    const seen: Seen = { tookMs: 0, stalestS: 0, cached: new Map(), uncached: new Map() };
    for (let n = 0; n < CACHED; n += 1) {
      const status = await pod.ask(seededKey(apiId, n));
      if (status !== 200) throw new Error(`a seeded key got ${status}`);
    }
    const startedAt = performance.now();
    await redis.flushall();
    let isComplete = false;
    const whole = untilWhole(redis).then(() => {
      isComplete = true;
    });
    for (let n = CACHED; !isComplete; n += 1) {
      count(seen.cached, await pod.ask(seededKey(apiId, n % CACHED)));
      count(seen.uncached, await pod.ask(seededKey(apiId, n)));
      seen.stalestS = Math.max(seen.stalestS, await pod.stalenessS());
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    await whole;
    seen.tookMs = performance.now() - startedAt;
    return toFigures(seen);
  } finally {
    redis.disconnect();
    await stack.close();
  }
};

function toFigures({ tookMs, stalestS, cached, uncached }: Seen): Figure[] {
  const refused = (cached.get(401) ?? 0) + (uncached.get(401) ?? 0);
  const responds = (statuses: Map<number, number>) => [...statuses].map(([code, n]) => `${n} × ${code}`).join(", ");
  return [
    {
      name: `${KEYS} keys projected again after a loss of Redis`,
      unit: "s",
      value: tookMs / 1000,
      max: 60,
      detail: "",
    },
    { name: "staleness of a pod meanwhile, at most", unit: "s", value: stalestS, max: 5, detail: "" },
    {
      name: "good keys that were refused meanwhile",
      unit: "responses",
      value: refused,
      max: 0,
      detail: `known to the pod: ${responds(cached)}; not known: ${responds(uncached)}`,
    },
  ];
}

const count = (statuses: Map<number, number>, status: number) => statuses.set(status, (statuses.get(status) ?? 0) + 1);

const untilWhole = (redis: Redis): Promise<unknown> =>
  waitFor(
    "everything to be projected",
    async () => (await redis.hget(new RedisKeys().projectionState(GLOBAL), "complete")) === "1",
    { deadlineMs: DEADLINE_MS, everyMs: 200 },
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
