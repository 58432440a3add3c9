import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { policyBody } from "../../api-server/test/resources.ts";
import type { Answer, Ask } from "./children/gates.ts";
import { drawCurves } from "./curves.ts";
import { cpuMicros, median, redisNumber } from "./measure.ts";
import { type Figure, type Section, Started, timed } from "./section.ts";
import { seedKeys } from "./seed.ts";
import type { Stack } from "./stack.ts";

/* Many gates on one Redis, without requests: connections, the reads of the change stream, pod reports and Redis users. */

const STEPS = [100, 300, 1000, 2000, 3000];
/** Number of processes that run the gates. A single process cannot keep up with thousands. */
const CHILDREN = 4;
const REST_MS = 15_000;
const CHANGES = 20;
const BULK_KEYS = 10_000;

interface Step {
  readonly gates: number;
  readonly connections: number;
  readonly openS: number;
  readonly redisMb: number;
  /** CPU of Redis while nothing changes, percent of a core. */
  readonly restPercent: number;
  readonly changeMs: readonly number[];
  readonly bulkS: number;
  readonly bulkRedisS: number;
  readonly reconnectS: number;
}

/** Measures what growing numbers of gates cost one Redis. */
export const gates: Section = async (environment, { progress, pictures }) => {
  let apiId = "";
  const stack = await environment.openSecond("gates", async ({ databaseUrl, workspaceId }) => {
    apiId = await seedKeys(databaseUrl, { workspaceId, count: BULK_KEYS });
  });
  const started = new Started();
  const redis = new Redis(stack.redisUrl);
  const db = new pg.Client({ connectionString: stack.databaseUrl });
  await db.connect();
  try {
    const { policyId } = await changePolicy(stack, apiId, 0);
    const children: Children = [];
    for (let n = 0; n < CHILDREN; n += 1) {
      children.push(await started.add(startChild(stack, policyId, `bench-${n}`)));
    }
    let changes = 0;
    /** Changes the policy. Returns how long each gate took to enforce it, ms. */
    const change = async (): Promise<number[]> => {
      changes += 1;
      const { version } = await changePolicy(stack, apiId, changes);
      const changedMs = Date.now();
      return (await askAll(children, { version })).map((ms) => ms - changedMs);
    };
    const steps: Step[] = [];
    for (const count of STEPS) {
      const more = count - (steps.at(-1)?.gates ?? 0);
      progress(`gates: opening ${more} more`);
      const openMs = await timed(() => askAll(children, { open: more / CHILDREN }));
      const measured = await measureStep({ stack, redis, db, change }, (what) => progress(`gates: ${count}, ${what}`));
      steps.push({ gates: count, openS: openMs / 1000, ...measured });
    }
    if (pictures) await draw(steps);
    return toFigures(steps);
  } finally {
    await started.stop();
    await db.end();
    redis.disconnect();
    await stack.close();
  }
};

interface Measuring {
  readonly stack: Stack;
  readonly redis: Redis;
  readonly db: pg.Client;
  readonly change: () => Promise<number[]>;
}

async function measureStep(
  { stack, redis, db, change }: Measuring,
  progress: (what: string) => void,
): Promise<Omit<Step, "gates" | "openS">> {
  progress("at rest");
  const rest = await redisCpu(stack.redisPid, () => new Promise((done) => setTimeout(done, REST_MS)));
  const changeMs: number[] = [];
  for (let n = 0; n < CHANGES; n += 1) changeMs.push(Math.max(...(await change())));
  progress(`${BULK_KEYS} changed keys`);
  const bulk = await redisCpu(stack.redisPid, async () => {
    await db.query("update keys set name = gen_random_uuid()");
    // This change comes after those of the keys, so all of them have arrived where the new policy is enforced.
    await change();
  });
  progress("all connections closed");
  const reconnectMs = await timed(async () => {
    await redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await change();
  });
  return {
    connections: await redisNumber(redis, "clients", "connected_clients"),
    redisMb: (await redisNumber(redis, "memory", "used_memory")) / 1e6,
    restPercent: (100 * rest.cpuS) / rest.tookS,
    changeMs,
    bulkS: bulk.tookS,
    bulkRedisS: bulk.cpuS,
    reconnectS: reconnectMs / 1000,
  };
}

type Children = Array<{ ask(ask: Ask): Promise<Answer>; stop(): Promise<void> }>;

async function startChild(stack: Stack, policyId: string, name: string): Promise<Children[number]> {
  const script = join(import.meta.dirname, "children", "gates.ts");
  const args = [stack.workspaceId, policyId, name];
  const child = fork(script, args, { env: { ...process.env, REDIS_URL: stack.redisUrl } });
  await nextMessage(child);
  return {
    ask: (ask) => {
      const answered = nextMessage(child);
      child.send(ask);
      return answered as Promise<Answer>;
    },
    stop: async () => {
      child.disconnect();
      await once(child, "exit");
    },
  };
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const ended = new AbortController();
  const exit = once(child, "exit", { signal: ended.signal }).then(() => {
    throw new Error("a process of gates ended; its log says why");
  });
  exit.catch(() => undefined);
  try {
    return (await Promise.race([once(child, "message"), exit]))[0];
  } finally {
    ended.abort();
  }
}

const askAll = async (children: Children, ask: Ask): Promise<number[]> =>
  (await Promise.all(children.map((child) => child.ask(ask)))).flat();

async function changePolicy({ call }: Stack, apiId: string, change: number) {
  const body = policyBody(apiId, "gates", { onStale: { after: `${60 + change}s`, action: "Serve" } });
  const { ids, policy } = await call<{ ids: { policyId: string }; policy: { version: number } }>(
    "managed.applyObject",
    body,
  );
  return { policyId: ids.policyId, version: policy.version };
}

async function redisCpu(pid: number, work: () => Promise<unknown>): Promise<{ cpuS: number; tookS: number }> {
  const before = cpuMicros(pid);
  const ms = await timed(work);
  return { cpuS: (cpuMicros(pid) - before) / 1e6, tookS: ms / 1000 };
}

/** Number of gates at which the figures have bounds. */
const BOUNDED_AT = 1000;

function toFigures(steps: readonly Step[]): Figure[] {
  return steps.flatMap((step) => {
    const bound = (max: number) => (step.gates === BOUNDED_AT ? max : undefined);
    const name = `${step.gates} gates`;
    const slowestMs = Math.max(...step.changeMs);
    const changes = `${CHANGES} changes, median ${median(step.changeMs).toFixed(0)} ms`;
    const figures: Figure[] = [
      {
        name: `${name}: Redis at rest, percent of a core`,
        unit: "%",
        value: step.restPercent,
        max: bound(25),
        detail: `${step.connections} connections, ${step.redisMb.toFixed(0)} MB, opened in ${step.openS.toFixed(1)} s`,
      },
      {
        name: `${name}: a change answered → enforced at all`,
        unit: "ms",
        value: slowestMs,
        max: bound(1000),
        detail: changes,
      },
      {
        name: `${name}: ${BULK_KEYS} changed keys → known to all`,
        unit: "s",
        value: step.bulkS,
        max: bound(30),
        detail: `${step.bulkRedisS.toFixed(1)} s CPU of Redis`,
      },
      {
        name: `${name}: all connections lost → a change enforced at all`,
        unit: "s",
        value: step.reconnectS,
        max: bound(30),
        detail: "",
      },
    ];
    return figures;
  });
}

async function draw(steps: readonly Step[]): Promise<void> {
  const x = { label: "gates", values: steps.map((step) => step.gates) };
  await drawCurves("gates", [
    {
      title: "Redis at rest",
      x,
      curves: [{ label: "CPU, % of a core", values: steps.map((step) => step.restPercent) }],
    },
    {
      title: "A change, until enforced",
      x,
      curves: [
        { label: "median of the slowest gate, ms", values: steps.map(({ changeMs }) => median(changeMs)) },
        { label: "slowest, ms", values: steps.map(({ changeMs }) => Math.max(...changeMs)) },
      ],
    },
    {
      title: "10,000 changed keys",
      x,
      curves: [
        { label: "until known to all gates, s", values: steps.map((step) => step.bulkS) },
        { label: "CPU of Redis, s", values: steps.map((step) => step.bulkRedisS) },
      ],
    },
  ]);
}
