import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { partAddress } from "./broker.ts";
import type { TestCertificate } from "./certificate.ts";
import { REDIS_READY, redisArguments, redisBinary } from "./parts/redis.ts";
import { freePort } from "./ports.ts";
import { startProcess } from "./process.ts";
import { waitFor } from "./wait.ts";

export type TestRedis = {
  url: string;
  /** The required prefix of every key of this caller; ends in a colon. */
  prefix: string;
  /** Deletes the keys below the prefix. */
  close(): Promise<void>;
};

/**
 * Returns a key prefix on the Redis that all files of a run share. That Redis may not be flushed, stopped or
 * configured; a test that needs that uses `startOwnRedis`.
 */
export async function createTestRedis(): Promise<TestRedis> {
  const { url = "" } = await partAddress("redis");
  const prefix = `t${randomBytes(6).toString("hex")}:`;
  return { url, prefix, close: () => deleteKeys(url, prefix) };
}

async function deleteKeys(url: string, prefix: string): Promise<void> {
  const redis = new Redis(url);
  try {
    for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1000 }) as AsyncIterable<string[]>) {
      if (keys.length > 0) await redis.unlink(...keys);
    }
  } finally {
    redis.disconnect();
  }
}

export type OwnRedisOptions = {
  /** One node of a cluster that holds all slots: commands over several slots are refused with CROSSSLOT. */
  cluster?: boolean;
  /** Another program than the first of the PATH. */
  program?: string | undefined;
  /** It listens with TLS alone, and speaks TLS with its like. Clients need no certificate. */
  tls?: TestCertificate | undefined;
  /** More settings as command-line arguments, such as `["--appendonly", "yes"]`; later ones win. */
  args?: string[];
};

export type OwnRedis = {
  url: string;
  port: number;
  /** Its working folder, with its dump or append-only file. */
  dir: string;
  /** Of the current process: `process.kill(redis.pid, "SIGSTOP")` makes it hang instead of disappear. */
  readonly pid: number;
  /** Ends the server and removes its folder. May be called twice. */
  stop(): Promise<void>;
  /** Ends only the process, so that clients lose their connections; `restart` starts it again. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /**
   * Kills the process if it still runs (with `signal`, SIGTERM when left out) and starts it again on the same port and folder.
   * Without persistence in the `args` (those of the start, unless given here) the new one starts empty.
   */
  restart(options?: { args?: string[]; signal?: NodeJS.Signals }): Promise<void>;
};

/** Starts a separate Redis server on a free port of 127.0.0.1, for tests that flush, restart or kill it. */
export async function startOwnRedis({
  cluster = false,
  args = [],
  program,
  tls,
}: OwnRedisOptions = {}): Promise<OwnRedis> {
  const binary = program ?? (await redisBinary());
  const dir = await mkdtemp(join(tmpdir(), "postern-own-redis-"));
  const port = await freePort();
  const clusterArguments = cluster ? ["--cluster-enabled", "yes", "--cluster-port", String(await freePort())] : [];
  const url = `${tls === undefined ? "redis" : "rediss"}://127.0.0.1:${port}`;

  const start = async (extra: string[]) => {
    const tlsArguments =
      tls === undefined ? [] : ["--port", "0", "--tls-port", String(port), ...redisTlsArguments(tls)];
    const all = [...redisArguments({ port, dir }), ...tlsArguments, ...clusterArguments, ...extra];
    return await startProcess(binary, all, { readyLine: REDIS_READY, cwd: dir });
  };
  let server = await start(args);
  if (cluster) await formCluster(url);

  const kill = async (signal: NodeJS.Signals = "SIGTERM") => {
    // A process that a test has stopped with SIGSTOP would not receive its end.
    server.kill("SIGCONT");
    server.kill(signal);
    await server.stop();
  };
  return {
    url,
    port,
    dir,
    get pid() {
      return server.pid;
    },
    kill,
    stop: async () => {
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
    restart: async (options = {}) => {
      await kill(options.signal);
      server = await start(options.args ?? args);
      // The node's file in the folder remembers its slots; it only needs the time to become ready.
      if (cluster) await clusterIsReady(url);
    },
  };
}

/** What a Redis or a sentinel needs to speak TLS with its like and with clients that show no certificate. */
export const redisTlsArguments = ({ certFile, keyFile }: TestCertificate): string[] => [
  ...["--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", certFile],
  ...["--tls-auth-clients", "no", "--tls-replication", "yes", "--tls-cluster", "yes"],
];

async function formCluster(url: string): Promise<void> {
  const redis = new Redis(url);
  try {
    await redis.cluster("ADDSLOTSRANGE", 0, 16383);
  } finally {
    redis.disconnect();
  }
  await clusterIsReady(url);
}

/** A node serves only two seconds after it has all its slots. */
async function clusterIsReady(url: string): Promise<void> {
  const redis = new Redis(url);
  try {
    await waitFor("the one-node Redis Cluster to be ok", async () =>
      String(await redis.cluster("INFO")).includes("cluster_state:ok"),
    );
  } finally {
    redis.disconnect();
  }
}
