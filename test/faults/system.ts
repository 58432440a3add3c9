import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { Redis } from "ioredis";
import type { Pool } from "pg";
import { type Logger, pino } from "pino";
import { Registry } from "prom-client";
import { onTestFinished } from "vitest";
import { registerRootKey } from "../../api-server/domain/bootstrap.ts";
import { type Relay, startRelay } from "../../api-server/relay/relay.ts";
import { type ApiServer, start } from "../../api-server/start.ts";
import { createPool } from "../../api-server/store/pool.ts";
import { findWorkspace } from "../../api-server/store/workspaces.ts";
import { makeId } from "../../core/ids.ts";
import { makeKeyString } from "../../core/keys/key-string.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { startSidecar } from "../../sidecar/start.ts";
import { aPolicy, call, startApp, withKey } from "../harness/gate.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { type RunningProcess, startProcess } from "../harness/process.ts";
import { createTestRedis, type OwnRedis, startOwnRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";

/*
 * The whole system over a real Postgres and a real Redis: api-servers (in this process, or as one that can be killed),
 * sidecars, and hands that reach into both stores. What a test opens is closed when it ends, in the reverse order.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const LOCAL = { host: "127.0.0.1", port: 0 };

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly body: any;
}

/** An api-server, as a customer sees it. */
export interface Api {
  readonly url: string;
  call(path: string, body: unknown, rootKey?: string): Promise<Reply>;
  /** The same for a success: throws when the status is not 200, else gives `data`. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  data(path: string, body: unknown, rootKey?: string): Promise<any>;
  /** The code that keys.verifyKey gives. */
  code(key: string): Promise<string>;
}

export interface LocalApi extends Api {
  readonly server: ApiServer;
  readonly edge: Edge;
}

export interface SpawnedApi extends Api {
  readonly process: RunningProcess;
}

export interface Gate {
  /** The status of a request with this key. */
  status(key: string, path?: string): Promise<number>;
  /** What the readiness probe says of the staleness, ms; null before the first heartbeat. */
  stalenessMs(): Promise<number | null>;
  readonly edge: Edge;
  close(): Promise<void>;
}

export interface GateOptions {
  readonly apiId: string;
  readonly policy?: Partial<CompiledPolicy>;
  readonly workspaceId?: string;
  readonly rootKey?: string;
  /** Another way to the same Redis. */
  readonly redisUrl?: string;
}

export interface SystemOptions {
  /** A Redis that the test may flush, kill and restart. */
  readonly ownRedis?: boolean;
  readonly log?: Logger;
}

export class System {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly prefix: string;
  readonly rootKey = makeKeyString({ prefix: "root", randomBytes: randomBytes(24) }).key;
  /** Hands in Postgres, such as somebody with psql has. */
  readonly db: Pool;
  /** Hands in Redis. */
  readonly raw: Redis;
  readonly #ownRedis: OwnRedis | undefined;
  readonly #parts: AsyncDisposableStack;
  readonly #log: Logger;

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
    this.#log = log;
    this.db = createPool(databaseUrl, { connectionsMax: 8, onIdleError: () => undefined });
    parts.defer(() => this.db.end());
    this.raw = new Redis(redis.url, { retryStrategy: () => 50 }).on("error", () => undefined);
    parts.defer(() => this.raw.disconnect());
  }

  get redis(): OwnRedis {
    if (this.#ownRedis === undefined) throw new Error("this system has no Redis of its own");
    return this.#ownRedis;
  }

  /** Closes it when the test ends. */
  closing<T extends { close(): Promise<unknown> }>(part: T): T {
    this.#parts.defer(async () => void (await part.close()));
    return part;
  }

  async edge(clientName: string, url = this.redisUrl): Promise<Edge> {
    return this.closing(await openRedisEdge({ url, prefix: this.prefix, clientName }));
  }

  /** An api-server in this process. */
  async api(): Promise<LocalApi> {
    const edge = await this.edge("test-api");
    const { databaseUrl, rootKey } = this;
    const server = await start({ databaseUrl, edge, ...LOCAL, rootKey, logger: this.#log });
    this.closing(server);
    return { ...client(server.url, rootKey), server, edge };
  }

  /** An api-server in a process of its own, which can be killed. */
  async spawnApi(env: Record<string, string> = {}): Promise<SpawnedApi> {
    const args = ["cli/main.ts", "api-server", "--host", LOCAL.host, "--port", "0"];
    const child = await startProcess(process.execPath, args, {
      cwd: ROOT,
      readyLine: /"msg":"ready"/,
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
    return { ...client(JSON.parse(ready).url, this.rootKey), process: child };
  }

  /** A relay by itself, over stores that the test may slow down. */
  relay({ writer, credits }: Pick<Edge, "writer" | "credits">): Relay {
    const newProjectionId = () => makeId("projection", randomBytes(24));
    const { databaseUrl } = this;
    return this.closing(
      startRelay({ databaseUrl, writer, credits, newProjectionId, log: this.#log, metrics: new Registry() }),
    );
  }

  async workspaceId(): Promise<string> {
    const found = await findWorkspace(this.db, { workspace: "default" });
    if (found === undefined) throw new Error("the workspace default is not there yet");
    return found.id;
  }

  /** A sidecar that guards an API with a policy of this test's, ready to decide. */
  async gate(api: Api, { apiId, policy = {}, ...of }: GateOptions): Promise<Gate> {
    const { policyId } = await api.data(
      "policies.setPolicy",
      { apiId, name: "test/faults/gate", uid: "uid-1", generation: 1, policy: aPolicy({ apiId, ...policy }) },
      of.rootKey,
    );
    const app = this.closing(await startApp());
    const edge = await this.edge("test-sidecar", of.redisUrl);
    const sidecar = await startSidecar({
      edge,
      workspaceId: of.workspaceId ?? (await this.workspaceId()),
      policyId,
      upstream: app.url,
      listen: LOCAL,
      admin: LOCAL,
      podId: `pod-${randomBytes(4).toString("hex")}`,
      region: "test",
      errorDocsUrl: "https://docs.test",
      logger: this.#log,
    });
    this.closing(sidecar);
    const [port, adminPort] = [sidecar.url, sidecar.adminUrl].map((url) => Number(new URL(url).port)) as [
      number,
      number,
    ];
    const readyz = () => call(adminPort, { path: "/readyz" });
    await waitFor("the sidecar to be ready", async () => (await readyz()).status === 200);
    return {
      edge,
      status: async (key, path = "/") => (await call(port, { path, ...withKey(key) })).status,
      stalenessMs: async () => JSON.parse((await readyz()).body).stalenessMs,
      close: () => sidecar.close(),
    };
  }
}

/** Opened by a test, closed when that ends. */
export async function openSystem({ ownRedis = false, log = SILENT }: SystemOptions = {}): Promise<System> {
  const parts = new AsyncDisposableStack();
  onTestFinished(() => parts.disposeAsync());
  const database = await createTestDatabase();
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

function client(url: string, ownRootKey: string): Api {
  const callApi = async (path: string, body: unknown, rootKey = ownRootKey): Promise<Reply> => {
    const response = await fetch(`${url}/v2/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  const data: Api["data"] = async (path, body, rootKey) => {
    const reply = await callApi(path, body, rootKey);
    if (reply.status !== 200) throw new Error(`${path} answered ${reply.status}: ${JSON.stringify(reply.body)}`);
    return reply.body.data;
  };
  return { url, call: callApi, data, code: async (key) => (await data("keys.verifyKey", { key })).code };
}

/** Another workspace with a root key, made as an operator of the installation makes one, while everything runs. */
export async function makeWorkspace(system: System, id: string): Promise<{ workspaceId: string; rootKey: string }> {
  await system.db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [id]);
  const { key: rootKey } = makeKeyString({ prefix: "root", randomBytes: randomBytes(24) });
  await registerRootKey(system.db, { workspaceId: id, rootKey });
  return { workspaceId: id, rootKey };
}

export interface TestKey {
  readonly keyId: string;
  readonly key: string;
}

/** An API and a key in it. */
export async function makeKey(api: Api, body: object = {}): Promise<TestKey & { apiId: string }> {
  const { apiId } = await api.data("apis.createApi", { name: `api-${randomBytes(4).toString("hex")}` });
  return { apiId, ...(await api.data("keys.createKey", { apiId, ...body })) };
}
