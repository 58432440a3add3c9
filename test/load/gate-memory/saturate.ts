import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import autocannon from "autocannon";
import { openRedisEdge } from "../../../edge/open.ts";
import { bundle } from "../../../scripts/bundle.ts";
import { aPolicy, aRule, call, POLICY, Records, startApp, WORKSPACE, withKey } from "../../harness/gate.ts";
import { freePort } from "../../harness/ports.ts";
import { startProcess } from "../../harness/process.ts";
import { startOwnRedis } from "../../harness/redis.ts";
import { waitFor } from "../../harness/wait.ts";
import { STRICT } from "../gate-load.ts";
import { cpuMicros, peakResidentMb, residentMb } from "../measure.ts";
import { openMemoryBound } from "../memory-bound.ts";

/*
 * A gate as in a pod: the bundle of its image, in a cgroup with the memory limit that it has by default, with more clients than it can
 * serve. What costs memory comes one after the other: many keys, bodies, answers, clients that are slow, a Redis that is slow, unknown keys.
 */

export interface SaturationOptions {
  readonly memoryBytes: number;
  readonly keys: number;
  readonly connections: number;
  readonly secondsPerPhase: number;
  /** As the webhook sets them for such a limit. */
  readonly nodeOptions: string;
  readonly onPhase?: (phase: Phase) => void;
}

export interface Phase {
  readonly name: string;
  readonly requests: number;
  /** Answers by status; 0 are connections that ended without one. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly cpuMicrosPerRequest: number;
  /** At the end of the phase, and the most so far, in MB. */
  readonly residentMb: number;
  readonly residentPeakMb: number;
  /** The most that its cgroup was charged so far. */
  readonly chargedMb: number | undefined;
}

export interface Saturation {
  readonly phases: readonly Phase[];
  /** The peak that the cgroup was charged, in MB; undefined where none could be made. */
  readonly chargedMb: number | undefined;
  /** How the gate ended before it was told to. */
  readonly ended: string | undefined;
}

/** Large enough to be forwarded while they arrive. */
const LARGE_BYTES = 1024 * 1024;
/** Largest body that a gate buffers completely (`bufferedBodyBytesMax`). */
const WHOLE_BYTES = 16 * 1024;
const RESPONSE = Buffer.alloc(64 * 1024, "a");

export async function saturateGate(options: SaturationOptions): Promise<Saturation> {
  const closers: Array<() => Promise<unknown>> = [];
  try {
    const dir = await mkdtemp(join(tmpdir(), "postern-gate-memory-"));
    closers.push(() => rm(dir, { recursive: true }));
    await bundle("sidecar", dir);
    const redis = await startOwnRedis();
    closers.push(() => redis.stop());
    const edge = await openRedisEdge({ url: redis.url, clientName: "test-relay" });
    closers.push(() => edge.close());
    await waitFor("Redis", () => edge.ping().then(() => true));
    const records = new Records(edge);
    const keys = await writeRecords(records, options.keys);
    const beat = setInterval(() => void records.heartbeat().catch(() => undefined), 500);
    closers.push(async () => clearInterval(beat));
    const app = await startApp((req, res) => {
      req.resume().on("end", () => res.end(req.url === "/large" ? RESPONSE : "ok"));
    });
    closers.push(() => app.close());

    const bound = await openMemoryBound(options.memoryBytes);
    if (bound !== undefined) closers.push(() => bound.close());
    const [port, adminPort] = [await freePort(), await freePort()];
    const args = [join(dir, "main.mjs")];
    const started = bound === undefined ? { command: process.execPath, args } : bound.within(process.execPath, args);
    const gate = await startProcess(started.command, started.args, {
      cwd: dir,
      readyLine: /"msg":"listening"/,
      env: {
        NODE_ENV: "production",
        NODE_OPTIONS: options.nodeOptions,
        NODE_COMPILE_CACHE: undefined,
        REDIS_URL: redis.url,
        POSTERN_WORKSPACE: WORKSPACE,
        POSTERN_POLICY: POLICY,
        POSTERN_UPSTREAM: app.url,
        POSTERN_HOST: "127.0.0.1",
        POSTERN_SIDECAR_PORT: String(port),
        POSTERN_ADMIN_PORT: String(adminPort),
        POSTERN_DRAIN_TIMEOUT: "0",
      },
    });
    closers.push(() => gate.stop());
    let ended: string | undefined;
    void gate.exited.then(({ code, signal }) => {
      ended = signal ?? `code ${code}`;
    });
    await waitFor("the gate to serve", async () => (await call(port, withKey(keys[0] ?? ""))).status === 200);

    const phases: Phase[] = [];
    const run = async (name: string, load: Load, ofKeys = keys): Promise<void> => {
      if (ended !== undefined) return;
      const usedBefore = cpuMicros(gate.pid);
      const { requests, statuses } = await send(port, { ...options, keys: ofKeys, load });
      if (ended !== undefined) return;
      const phase = {
        ...{ name, requests, statuses },
        cpuMicrosPerRequest: Math.round((cpuMicros(gate.pid) - usedBefore) / requests),
        residentMb: residentMb(gate.pid),
        residentPeakMb: peakResidentMb(gate.pid),
        chargedMb: bound === undefined ? undefined : (await bound.peakBytes()) / 1e6,
      };
      phases.push(phase);
      options.onPhase?.(phase);
    };
    // By number: each of them is in the cache afterwards, however slow the machine is.
    await run("every key, no body", { amount: keys.length + options.connections });
    await run("bodies that are held whole", { method: "POST", body: Buffer.alloc(WHOLE_BYTES, "b") });
    await run("large bodies", { method: "POST", body: Buffer.alloc(LARGE_BYTES, "c") });
    await run("large answers", { path: "/large" });
    const stopSlowness = slowDown(redis.pid);
    await run("a slow Redis", {});
    await run("a slow Redis, and bodies", { method: "POST", body: Buffer.alloc(WHOLE_BYTES, "d") });
    const unknown = Array.from({ length: options.keys }, (_, i) => `nobody-has-this-key-${i}`);
    await run("a slow Redis, and keys that do not exist", {}, unknown);
    await stopSlowness();
    await run("every key again", { amount: keys.length });
    const chargedMb = bound === undefined ? undefined : (await bound.peakBytes()) / 1_000_000;
    return { phases, chargedMb, ended };
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** A policy with a strict limit, and keys with as much in their records as a diligent customer puts there. Returns the keys. */
async function writeRecords(records: Records, count: number): Promise<string[]> {
  await records.begin();
  await records.putPolicy(aPolicy({ rules: [aRule({ ratelimits: [STRICT] })] }));
  const permissions = Array.from({ length: 20 }, (_, i) => `orders.lines.${i}.write`);
  const ratelimits = ["requests", "tokens"].map((name, i) => ({
    ...{ id: `rl_${i}`, name, limit: 1e9, durationMs: 60_000, autoApply: true },
  }));
  const keys = Array.from({ length: count }, (_, i) => `key-of-the-bench-${i}-${"x".repeat(16)}`);
  for (let from = 0; from < count; from += 200) {
    await Promise.all(
      keys.slice(from, from + 200).map((key, i) => {
        const record = { name: `the key of customer ${from + i}`, permissions, ratelimits };
        return records.putAnyKey(key, record, { announced: false });
      }),
    );
  }
  await records.complete();
  return keys;
}

/** Of a phase; an `amount` of requests, or as many as come in its time. */
interface Load {
  readonly path?: string;
  readonly method?: "POST";
  readonly body?: Buffer;
  readonly amount?: number;
}

interface Sending extends Pick<SaturationOptions, "connections" | "secondsPerPhase"> {
  readonly keys: readonly string[];
  readonly load: Load;
}

async function send(port: number, { keys, connections, secondsPerPhase, load }: Sending) {
  const { path = "/orders/1", ...rest } = load;
  let next = 0;
  const setupRequest = (request: autocannon.Request): autocannon.Request => {
    next = (next + 1) % keys.length;
    return { ...request, path, headers: { ...request.headers, authorization: `Bearer ${keys[next]}` } };
  };
  const result = await autocannon({
    url: `http://127.0.0.1:${port}`,
    connections,
    timeout: 30,
    ...(rest.amount === undefined ? { duration: secondsPerPhase } : {}),
    ...rest,
    requests: [{ setupRequest }],
  });
  const { statusCodeStats = {}, errors } = result as typeof result & {
    statusCodeStats?: Record<string, { count: number }>;
  };
  const statuses: Record<string, number> = {};
  for (const [status, { count }] of Object.entries(statusCodeStats)) statuses[status] = count ?? 0;
  return { requests: result.requests.total, statuses: errors === 0 ? statuses : { ...statuses, 0: errors } };
}

/** Lets a server stand still for 300 ms of each 400, until it is told to stop that. */
function slowDown(pid: number): () => Promise<void> {
  let isSlow = true;
  const running = (async () => {
    while (isSlow) {
      process.kill(pid, "SIGSTOP");
      await sleep(300);
      process.kill(pid, "SIGCONT");
      await sleep(100);
    }
  })();
  return async () => {
    isSlow = false;
    await running;
  };
}
