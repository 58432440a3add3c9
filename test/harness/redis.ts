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
  /** Key prefix of this caller, ending in a colon. */
  prefix: string;
  /** Deletes the keys below the prefix. */
  close(): Promise<void>;
};

/**
 * Returns a key prefix on the Redis that all files of a run share. Tests that flush, stop or configure Redis use `startOwnRedis` instead.
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
  /** Whether the server is a cluster node with all slots, which rejects cross-slot commands with CROSSSLOT. */
  cluster?: boolean;
  /** Server program. Default: the first on the PATH. */
  program?: string | undefined;
  /** Whether the server and its peers use TLS only. Clients need no certificate. */
  tls?: TestCertificate | undefined;
  /** Further settings as command-line arguments such as `["--appendonly", "yes"]`; later ones win. */
  args?: string[];
};

export type OwnRedis = {
  url: string;
  port: number;
  /** Working folder with the dump or append-only file. */
  dir: string;
  /** Id of the current process: `process.kill(redis.pid, "SIGSTOP")` makes the server hang. */
  readonly pid: number;
  /** Stops the server and removes its folder. Repeatable. */
  stop(): Promise<void>;
  /** Kills only the process, so that clients lose their connections; `restart` starts it again. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /**
   * Kills a running process (with `signal`, default SIGTERM) and starts it again on the same port and folder. Without persistence in `args`
   * (default: those of the start) the new one starts empty.
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
    // A process stopped with SIGSTOP would not handle its termination.
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
      // The node remembers its slots in a file and only needs time to become ready.
      if (cluster) await clusterIsReady(url);
    },
  };
}

/** Returns the TLS settings of a server or sentinel for peers and for clients without a certificate. */
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

/** A node serves only two seconds after it has all slots. */
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
