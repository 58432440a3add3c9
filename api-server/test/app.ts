import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { Registry } from "prom-client";
import type { AnalyticsStore } from "../../analytics/contract.ts";
import { openPostgresAnalytics } from "../../analytics/postgres/open.ts";
import { findQueueDepth } from "../../analytics/postgres/rollup-queue.ts";
import { QueryMetrics } from "../../analytics/query-metrics.ts";
import { makeId } from "../../core/ids.ts";
import { hashKey, makeKeyString } from "../../core/keys/key-string.ts";
import { ALL_GRANTS, WORKSPACE_GRANTS } from "../../core/permissions/root-key.ts";
import { deciderJson } from "../../edge/events/verification-line.ts";
import { LogThrottle } from "../../edge/log-throttle.ts";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase } from "../../test/harness/postgres.ts";
import { type AppOptions, buildApp } from "../app.ts";
import { DEFAULT_RETENTION_DAYS } from "../background/retention.ts";
import { createCreditService } from "../credits/postgres-credits.ts";
import { createPostgresSource } from "../db/records.ts";
import { insertRootKey } from "../db/root-keys.ts";
import { insertWorkspace, listWorkspaceIds } from "../db/workspaces.ts";
import type { Deps } from "../deps.ts";
import { createKeyOwners } from "../keys/key-owners.ts";
import { createKeyVault } from "../keys/key-vault.ts";
import { createRootKeyUsage } from "../keys/root-key-usage.ts";
import { createV1, type V1Settings } from "../plugins/v1/index.ts";
import { peopleDepsOf } from "../sign-in/settings.ts";
import { isOfV1, requestOf } from "./request.ts";

export interface Workspace {
  readonly id: string;
  /** Root key with every permission. */
  readonly rootKey: string;
}

export interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | number | undefined>;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly body: any;
}

export interface CallOptions {
  /** Root key of the call; `null` sends no Authorization header. Default: the root key of the first workspace. */
  readonly rootKey?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TestApp {
  readonly app: FastifyInstance;
  readonly databaseUrl: string;
  readonly deps: Deps;
  readonly edge: Edge;
  /** Analytics store in Postgres. It exists even if the API under test uses another store. */
  readonly analytics: AnalyticsStore;
  readonly workspace: Workspace;
  /** All log lines, one JSON text each. */
  readonly logs: string[];
  /** Advances the clock of the API and of its edge. */
  advance(ms: number): void;
  /**
   * Sends `POST /v2/<path>` with a JSON body; a string body is sent unchanged. A path such as `v1/apis.getApi` calls v1 with the
   * procedure's method; for a GET, the members are sent as query parameters.
   */
  call(path: string, body: unknown, options?: CallOptions): Promise<Reply>;
  /** Calls a procedure and returns `data` (v1: the complete body). Throws if the status is not 200 or 202. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  data(path: string, body: unknown, options?: CallOptions): Promise<any>;
  /** Creates a root key with these permissions, by default in the first workspace. */
  rootKey(permissions: readonly string[], options?: RootKeyOptions): Promise<string>;
  /** Stores the events of all previous calls and rolls them up. */
  ingest(): Promise<void>;
  /** Creates another workspace, and a root key with every permission in that workspace. */
  makeWorkspace(grants?: readonly string[]): Promise<Workspace>;
  /** Returns the audit log of a workspace, oldest first, without the entries about the use of v1. */
  audit(workspaceId?: string): Promise<AuditRow[]>;
  /** Stops the heartbeats of the projection, so that the projection becomes stale when `advance` is called. */
  stopHeartbeats(): void;
  dropDatabase(): Promise<void>;
  close(): Promise<void>;
}

export interface RootKeyOptions {
  readonly workspaceId?: string;
  readonly name?: string;
  readonly expiresAt?: number;
}

export interface AuditRow {
  readonly event: string;
  readonly actor: { type: string; id: string; name: string; meta?: { manager?: string } };
  readonly targets: Array<{ type: string; id: string; name?: string }>;
  readonly correlation_id: string | null;
  readonly request_id: string | null;
  readonly remote_ip: string | null;
  readonly user_agent: string | null;
  readonly time: number;
}

const PROJECTION_ID = "test";
const HEARTBEAT_MS = 2000;

/**
 * Starts the API with its own database and an in-memory edge. It runs without a relay: instead, the API itself reports its changes to the
 * projection, and the test's heartbeats keep the cache fresh.
 */
export async function buildTestApp(
  options: Omit<AppOptions, "oldApi"> & {
    readonly deps?: (deps: Deps) => Partial<Deps>;
    /** Settings of v1. Default: v1 is served. `none` builds the server without v1. */
    readonly v1?: V1Settings | "none";
  } = {},
): Promise<TestApp> {
  const database = await createTestDatabase();
  const logs: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void logs.push(line) });
  let offsetMs = 0;
  const nowMs = (): number => Date.now() + offsetMs;
  const db = createPool(database.url, { connectionsMax: 5 });
  const edge = createMemoryEdge({ nowMs });
  await edge.writer.begin(PROJECTION_ID, []);
  await edge.writer.complete(PROJECTION_ID, []);
  const projection = await openProjection({ source: createPostgresSource(db), stream: edge.stream, follow: "central" });
  const beat = async (): Promise<void> => void (await edge.writer.heartbeat(PROJECTION_ID, nowMs(), []));
  await beat();
  const heart = setInterval(() => void beat(), HEARTBEAT_MS);

  const metrics = options.metrics ?? new Registry();
  const analytics = openPostgresAnalytics({ databaseUrl: database.url, db, nowMs, log, metrics });
  const base: Deps = {
    db,
    projection,
    keyOwners: createKeyOwners({ db, projection }),
    wakeRelay: () => undefined,
    counters: edge.counters({ timeoutMs: 1000 }),
    peekLimits: (limits) => edge.counters({ timeoutMs: 1000 }).peek(limits),
    credits: createCreditService({ db, store: edge.credits, nowMs, log }),
    events: edge.sink,
    eventStreams: edge.events,
    pods: edge.pods,
    analytics,
    queryMetrics: new QueryMetrics(metrics),
    installation: {
      edge,
      isRelaying: () => true,
      degradations: () => [],
      encryptionKeyIds: ["test"],
      retentionDays: DEFAULT_RETENTION_DAYS,
      region: "test",
      certificate: () => undefined,
      rollUpDepth: () => findQueueDepth(db),
      usageProblem: undefined,
      startedAt: nowMs(),
    },
    keyVault: createKeyVault([{ id: "test", secret: randomBytes(32) }], { randomBytes }),
    log,
    throttle: new LogThrottle(),
    ...peopleDepsOf(options.signIn ?? {}),
    rootKeyUsage: createRootKeyUsage({ nowMs }),
    nowMs,
    randomBytes,
    docsUrl: "https://docs.test",
    decidedBy: deciderJson({ region: "test", source: "api" }),
    propagationDelayed: () => false,
  };
  const deps: Deps = { ...base, ...options.deps?.(base) };
  const { v1 = { isServed: true } } = options;
  const app = await buildApp(deps, { ...options, oldApi: v1 === "none" ? undefined : createV1(deps, v1) });

  async function rootKey(permissions: readonly string[], of: RootKeyOptions = {}): Promise<string> {
    const { key, start } = makeKeyString({ prefix: "root", randomBytes: randomBytes(16) });
    await insertRootKey(db, {
      id: makeId("rootKey", randomBytes(16)),
      workspaceId: of.workspaceId ?? workspace.id,
      hash: hashKey(key),
      start,
      name: of.name ?? null,
      permissions,
      expiresAt: of.expiresAt ?? null,
      createdAt: nowMs(),
    });
    return key;
  }

  async function ingest(): Promise<void> {
    await edge.sink.flush();
    await analytics.maintain(nowMs());
    for (const workspaceId of await listWorkspaceIds(db)) {
      const take = () =>
        edge.events.take(workspaceId, async (events) => void (await analytics.ingest(events, nowMs())));
      while ((await take()).entries > 0);
    }
    while (await analytics.rollUp());
  }

  async function makeWorkspace(grants: readonly string[] = WORKSPACE_GRANTS): Promise<Workspace> {
    const id = makeId("workspace", randomBytes(16));
    await insertWorkspace(db, { id, name: id, createdAt: nowMs() });
    return { id, rootKey: await rootKey(grants, { workspaceId: id }) };
  }

  async function call(path: string, body: unknown, { rootKey, headers }: CallOptions = {}): Promise<Reply> {
    const key = rootKey === undefined ? workspace.rootKey : rootKey;
    const { method, url, payload } = requestOf(path, body);
    const response = await app.inject({
      method,
      url,
      headers: {
        ...(payload === undefined ? {} : { "content-type": "application/json" }),
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...headers,
      },
      ...(payload === undefined ? {} : { payload }),
    });
    const isJson = /json/.test(String(response.headers["content-type"]));
    return {
      status: response.statusCode,
      headers: response.headers,
      body: isJson ? response.json() : response.payload,
    };
  }

  async function data(path: string, body: unknown, of?: CallOptions) {
    const reply = await call(path, body, of);
    if (reply.status !== 200 && reply.status !== 202)
      throw new Error(`${path} answered ${reply.status}: ${JSON.stringify(reply.body)}`);
    return isOfV1(path) ? reply.body : reply.body.data;
  }

  async function audit(workspaceId = workspace.id): Promise<AuditRow[]> {
    const { rows } = await db.query<AuditRow>(
      `select event, actor, targets, correlation_id, request_id, remote_ip, user_agent, time
         from audit_log
        where workspace_id = $1 and event <> 'api.v1_used'
        order by time, event`,
      [workspaceId],
    );
    return rows;
  }

  async function close(): Promise<void> {
    clearInterval(heart);
    await app.close();
    await projection.close();
    await edge.close();
    await analytics.close();
    await db.end();
    await database.drop();
  }

  const workspace = await makeWorkspace(ALL_GRANTS);
  return {
    app,
    databaseUrl: database.url,
    deps,
    edge,
    analytics,
    workspace,
    logs,
    advance: (ms) => {
      offsetMs += ms;
    },
    call,
    data,
    rootKey,
    ingest,
    makeWorkspace,
    audit,
    stopHeartbeats: () => clearInterval(heart),
    dropDatabase: () => database.drop(),
    close,
  };
}
