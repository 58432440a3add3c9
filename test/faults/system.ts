import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { Redis } from "ioredis";
import type { Pool } from "pg";
import { type Logger, pino } from "pino";
import { Registry } from "prom-client";
import { onTestFinished } from "vitest";
import { findWorkspace } from "../../api-server/db/workspaces.ts";
import { registerRootKey } from "../../api-server/domain/administration/bootstrap.ts";
import { type Relay, startRelay } from "../../api-server/relay/relay.ts";
import { type ApiServer, start } from "../../api-server/start.ts";
import { makeId } from "../../core/ids.ts";
import { makeKeyString } from "../../core/keys/key-string.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { PROGRAM, type RunningProcess, startProcess } from "../harness/process.ts";
import { createTestRedis, type OwnRedis, startOwnRedis } from "../harness/redis.ts";
import { type Api, makeClient } from "./client.ts";
import { type Gate, type GateOptions, startGate } from "./gate.ts";
import { type Pod, startPod } from "./pod.ts";

/*
 * The complete system on a real Postgres and a real Redis: api-servers (in this process or in one that can be killed), gates and direct
 * connections to both. Everything that a test opens is closed in reverse order at its end.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const LOCAL = { host: "127.0.0.1", port: 0 };

export interface LocalApi extends Api {
  readonly server: ApiServer;
  readonly edge: Edge;
}

export interface SpawnedApi extends Api {
  readonly process: RunningProcess;
}

export interface SystemOptions {
  /** Whether the test gets a Redis that it may flush, kill and restart. */
  readonly ownRedis?: boolean;
  readonly log?: Logger;
  /** Empty database of the test. Default: a new one. */
  readonly databaseUrl?: string;
  /** Called with the function that closes everything. Default: closes at the end of the calling test. */
  readonly whenDone?: (close: () => Promise<void>) => void;
}

export class System {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly prefix: string;
  readonly log: Logger;
  readonly rootKey = makeKeyString({ prefix: "root", randomBytes: randomBytes(24) }).key;
  /** Direct connection to Postgres, as with psql. */
  readonly db: Pool;
  /** Direct connection to Redis. */
  readonly raw: Redis;
  readonly #ownRedis: OwnRedis | undefined;
  readonly #parts: AsyncDisposableStack;

  constructor(options: {
    databaseUrl: string;
    redis: { url: string; prefix: string; own: OwnRedis | undefined };
    parts: AsyncDisposableStack;
    log: Logger;
  }) {
    const { databaseUrl, redis, parts, log } = options;
    this.databaseUrl = databaseUrl;
    this.redisUrl = redis.url;
    this.prefix = redis.prefix;
    this.#ownRedis = redis.own;
    this.#parts = parts;
    this.log = log;
    this.db = createPool(databaseUrl, { connectionsMax: 8, onIdleError: () => undefined });
    parts.defer(() => this.db.end());
    this.raw = new Redis(redis.url, { retryStrategy: () => 50 }).on("error", () => undefined);
    parts.defer(() => this.raw.disconnect());
  }

  get redis(): OwnRedis {
    if (this.#ownRedis === undefined) throw new Error("this system has no Redis of its own");
    return this.#ownRedis;
  }

  /** Closes `part` at the end of the test. */
  closing<T extends { close(): Promise<unknown> }>(part: T): T {
    this.#parts.defer(async () => void (await part.close()));
    return part;
  }

  async edge(clientName: string, url = this.redisUrl): Promise<Edge> {
    return this.closing(await openRedisEdge({ url, prefix: this.prefix, clientName }));
  }

  /** Starts an api-server in this process. */
  async api(databaseUrl = this.databaseUrl): Promise<LocalApi> {
    const edge = await this.edge("test-api");
    const { rootKey } = this;
    const server = await start({ databaseUrl, edge, ...LOCAL, rootKey, logger: this.log });
    this.closing(server);
    return { ...makeClient(server.url, rootKey), server, edge };
  }

  /** Starts an api-server in a separate process that can be killed. */
  async spawnApi(env: Record<string, string> = {}): Promise<SpawnedApi> {
    const port = env.POSTERN_API_PORT ?? "0";
    const args = [PROGRAM, "api-server", "--host", LOCAL.host, "--port", port];
    const child = await startProcess(process.execPath, args, {
      cwd: ROOT,
      readyLine: /"msg":"ready".*\n/,
      env: {
        DATABASE_URL: this.databaseUrl,
        REDIS_URL: this.redisUrl,
        POSTERN_REDIS_PREFIX: this.prefix,
        POSTERN_ROOT_KEY: this.rootKey,
        ...env,
      },
    });
    this.#parts.defer(async () => void (await child.stop()));
    const ready =
      child
        .stderr()
        .split("\n")
        .find((line) => line.includes('"msg":"ready"')) ?? "{}";
    return { ...makeClient(JSON.parse(ready).url, this.rootKey), process: child };
  }

  /** Starts `postern ingest` in a separate process that can be killed. */
  async spawnIngest(
    env: Record<string, string> = {},
  ): Promise<{ readonly adminUrl: string; readonly process: RunningProcess }> {
    const args = [PROGRAM, "ingest", "--host", LOCAL.host, "--admin-port", "0"];
    const child = await startProcess(process.execPath, args, {
      cwd: ROOT,
      readyLine: /"adminUrl":.*\n/,
      env: { DATABASE_URL: this.databaseUrl, REDIS_URL: this.redisUrl, POSTERN_REDIS_PREFIX: this.prefix, ...env },
    });
    this.#parts.defer(async () => void (await child.stop()));
    const adminUrl = /"adminUrl":"([^"]+)"/.exec(child.stderr())?.[1] ?? "";
    return { adminUrl, process: child };
  }

  /** Starts a relay without an api-server on an edge that the test may slow down. */
  relay({ writer, credits }: Pick<Edge, "writer" | "credits">): Relay {
    const newProjectionId = () => makeId("projection", randomBytes(24));
    const { databaseUrl } = this;
    return this.closing(
      startRelay({ databaseUrl, writer, credits, newProjectionId, log: this.log, metrics: new Registry() }),
    );
  }

  async workspaceId(): Promise<string> {
    const found = await findWorkspace(this.db, { workspace: "default" });
    if (found === undefined) throw new Error("the workspace default is not there yet");
    return found.id;
  }

  /** Starts a gate in front of an API with a policy of this test, and waits until it is ready. */
  gate(api: Api, options: GateOptions): Promise<Gate> {
    return startGate(this, api, options);
  }

  /** Opens the counters of a gate for tests that count each reply. An api-server must have started before. */
  pod(): Promise<Pod> {
    return startPod(this);
  }
}

/** Opens a system that is closed at the end of the test. */
export async function openSystem({
  ownRedis = false,
  log = SILENT,
  databaseUrl,
  whenDone = onTestFinished,
}: SystemOptions = {}): Promise<System> {
  const parts = new AsyncDisposableStack();
  whenDone(() => parts.disposeAsync());
  const database = databaseUrl === undefined ? await createTestDatabase() : { url: databaseUrl, drop: async () => {} };
  parts.defer(() => database.drop());
  if (ownRedis) {
    const own = await startOwnRedis();
    parts.defer(() => own.stop());
    return new System({ databaseUrl: database.url, redis: { url: own.url, prefix: "t", own }, parts, log });
  }
  const shared = await createTestRedis();
  parts.defer(() => shared.close());
  const redis = { url: shared.url, prefix: shared.prefix.replace(/:$/, ""), own: undefined };
  return new System({ databaseUrl: database.url, redis, parts, log });
}

const SILENT = pino({ level: "silent" });

/** Creates another workspace with a root key by the command line at runtime. */
export async function makeWorkspace(system: System, id: string): Promise<{ workspaceId: string; rootKey: string }> {
  await system.db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [id]);
  const { key: rootKey } = makeKeyString({ prefix: "root", randomBytes: randomBytes(24) });
  await registerRootKey(system.db, { workspaceId: id, rootKey });
  return { workspaceId: id, rootKey };
}
