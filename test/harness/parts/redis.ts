import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "../ports.ts";
import { startProcess } from "../process.ts";
import { unpackedProgram } from "./debian-packages.ts";
import { dockerAnswers, findBinary, findPart, MissingPart } from "./find.ts";

const NAMES = ["redis-server", "valkey-server"];
const ADVICE = "install redis-server or valkey-server (7 or newer), or start Docker, or set TEST_REDIS_URL";

type Server = { url: string; stop(): Promise<void> };

/** Finds or starts the Redis that the files of a run share, each with its own key prefix. */
export async function startRedisPart() {
  const server = await findPart<Server>("Redis", ADVICE, [
    { name: "TEST_REDIS_URL", attempt: fromEnvironment },
    { name: NAMES.join(" or "), attempt: async () => await start(await findBinary(NAMES)) },
    { name: "container redis:7", attempt: fromContainer },
    { name: "Debian's packages", attempt: async () => await start(await unpacked()) },
  ]);
  return { address: { url: server.url }, stop: server.stop };
}

/** Finds the Redis program, for a separate server that a test may kill and flush. Throws `MissingPart`. */
export async function redisBinary(): Promise<string> {
  const file = (await findBinary(NAMES)) ?? (await unpacked().catch(() => undefined));
  if (file === undefined)
    throw new MissingPart("redis-server is missing: install redis-server or valkey-server (7 or newer)");
  return file;
}

async function fromEnvironment(): Promise<Server | undefined> {
  const url = process.env.TEST_REDIS_URL;
  if (!url) return undefined;
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  redis.on("error", () => undefined); // The command below reports a failure.
  try {
    await redis.connect();
    await redis.ping();
  } finally {
    redis.disconnect();
  }
  return { url, stop: async () => {} };
}

async function start(binary: string | undefined): Promise<Server | undefined> {
  if (binary === undefined) return undefined;
  const dir = await mkdtemp(join(tmpdir(), "postern-redis-"));
  const port = await freePort();
  const server = await startProcess(binary, redisArguments({ port, dir }), { readyLine: REDIS_READY });
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export const REDIS_READY = /Ready to accept connections/;

/** Returns the settings of every test Redis: in memory and without eviction, as Postern requires. */
export function redisArguments({ port, dir }: { port: number; dir: string }): string[] {
  const values = {
    port: String(port),
    bind: "127.0.0.1",
    dir,
    save: "",
    appendonly: "no",
    "maxmemory-policy": "noeviction",
  };
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
}

async function fromContainer(): Promise<Server | undefined> {
  if (!(await dockerAnswers())) return undefined;
  const { GenericContainer } = await import("testcontainers");
  const container = await new GenericContainer("redis:7").withExposedPorts(6379).start();
  const url = `redis://${container.getHost()}:${container.getMappedPort(6379)}`;
  return { url, stop: async () => void (await container.stop()) };
}

const unpacked = (): Promise<string | undefined> =>
  unpackedProgram({ packages: ["redis-server", "redis-tools"] }, NAMES);
