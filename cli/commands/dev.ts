import { hostname } from "node:os";
import { join, resolve } from "node:path";
import type { Logger } from "pino";
import { type ApiServer, start } from "../../api-server/start.ts";
import { createMemoryEdge, type Edge, openRedisEdge } from "../../edge/open.ts";
import { type Operator, startOperator } from "../../operator/start.ts";
import { type Sidecar, startSidecar } from "../../sidecar/start.ts";
import { FOLLOWED_FOLDER, HTTP_URL, PORT, text } from "../accepts.ts";
import { analyticsAddress } from "../analytics-store.ts";
import { defineCommand, type Io, UsageError } from "../command.ts";
import { startDevControl } from "../dev-control.ts";
import { findRunningDev, removeDevState, writeDevState } from "../dev-state.ts";
import { startEmbeddedPostgres } from "../embedded-postgres.ts";
import { keepEncryptionKeys, readEncryptionKeys } from "../encryption-keys.ts";
import {
  analyticsStore,
  databaseUrl,
  dataDir,
  encryptionKeysFile,
  eventsMemory,
  eventsRedisUrl,
  json,
  redisPrefix,
  redisUrl,
  retention,
  v1,
} from "../options.ts";
import { type Closers, runService } from "../process.ts";
import { checkOwnRootKey, ROOT_KEY_WANTED } from "../root-key.ts";
import { type SignInValues, signInOf, signInOptions } from "../sign-in.ts";
import { parseHttpUrl, parseMib, parsePort, parseRetention, parseV1 } from "../values.ts";

/*
 * Runs all services in one process, with the same interfaces as in a cluster. Postgres is a real server; Redis is real only if REDIS_URL is
 * set.
 */

const HOST = "127.0.0.1";
/** Maximum time to wait for the first reconcile of a policy, and maximum time to wait afterwards until the sidecar has the policy. */
const FIRST_POLICY_DEADLINE_MS = 15_000;

/** Line that `--json` prints when all services are ready. */
interface ReadyLine {
  readonly apiUrl: string;
  /** URL of the sidecar; `null` if the manifests contain no policy. */
  readonly sidecarUrl: string | null;
  readonly adminUrl: string | null;
  readonly rootKey: string;
  /** One-time sign-in link, valid for five minutes. */
  readonly dashboardUrl: string;
  readonly pid: number;
}

export const dev = defineCommand({
  name: "dev",
  description: `Creates a root key at each start and revokes the previous one; set POSTERN_ROOT_KEY (${ROOT_KEY_WANTED}) to use your own. Creates an encryption key for recoverable keys in --data-dir, unless you provide one. Logs go to standard error.`,
  options: {
    manifests: {
      type: "string",
      placeholder: "DIR",
      help: "directory of manifests to apply and watch",
      accepts: FOLLOWED_FOLDER,
    },
    upstream: {
      type: "string",
      placeholder: "URL",
      help: "URL of the app",
      default: "http://127.0.0.1:3000",
      env: "POSTERN_UPSTREAM",
      accepts: HTTP_URL,
    },
    "data-dir": dataDir,
    "api-port": {
      type: "string",
      placeholder: "PORT",
      help: "port of the API; 0 selects a free port",
      default: "8080",
      accepts: PORT,
    },
    "sidecar-port": {
      type: "string",
      placeholder: "PORT",
      help: "port of the sidecar; 0 selects a free port",
      default: "8000",
      accepts: PORT,
    },
    "admin-port": {
      type: "string",
      placeholder: "PORT",
      help: "port of the sidecar's probes and metrics; 0 selects a free port",
      default: "0",
      accepts: PORT,
    },
    policy: {
      type: "string",
      placeholder: "NAMESPACE/NAME",
      help: "ApiKeyPolicy to enforce; required if the manifests define several",
      accepts: text("name"),
    },
    "database-url": databaseUrl,
    ...analyticsStore,
    "redis-url": redisUrl,
    "redis-prefix": redisPrefix,
    "events-redis-url": eventsRedisUrl,
    "events-memory": eventsMemory,
    ...retention,
    ...v1,
    "encryption-keys-file": encryptionKeysFile,
    ...signInOptions,
    json,
  },
  run: (options, io) => {
    const data = resolve(options["data-dir"]);
    const running = findRunningDev(data);
    if (running !== undefined) {
      throw new UsageError(`process ${running.pid} already runs on ${data}; stop it, or set another --data-dir`);
    }
    const given = io.env.POSTERN_ROOT_KEY;
    const rootKey = given === undefined || given === "" ? undefined : checkOwnRootKey(given, "POSTERN_ROOT_KEY");
    return runService({ name: "dev", env: io.env }, async (service) => {
      announce(await startDev({ options, rootKey, io, ...service }), options.json, io);
    });
  },
});

/** Starts all services and resolves when they serve. `closers` collects the functions that stop them. */
export async function startDev(parts: {
  options: DevOptions;
  /** Root key from the environment. Default: a new root key. */
  rootKey?: string | undefined;
  io: Io;
  log: Logger;
  closers: Closers;
}): Promise<ReadyLine> {
  const { options, rootKey, io, log, closers } = parts;
  const data = resolve(options["data-dir"]);
  const server = await startServer({ options, data, rootKey, io, log, closers });
  const gate = await startGate({ options, data, server, log, closers });
  return {
    apiUrl: server.api.url,
    sidecarUrl: gate?.url ?? null,
    adminUrl: gate?.adminUrl ?? null,
    rootKey: server.rootKey,
    dashboardUrl: await server.api.signInAddress(),
    pid: process.pid,
  };
}

export interface DevOptions extends SignInValues {
  readonly "data-dir": string;
  readonly json: boolean;
  readonly manifests: string | undefined;
  readonly upstream: string;
  readonly policy: string | undefined;
  readonly "api-port": string;
  readonly "sidecar-port": string;
  readonly "admin-port": string;
  readonly "database-url": string | undefined;
  readonly "analytics-url": string | undefined;
  readonly "analytics-reader-url": string | undefined;
  readonly "analytics-cluster": string | undefined;
  readonly "redis-url": string | undefined;
  readonly "redis-prefix": string;
  readonly "events-redis-url": string | undefined;
  readonly "events-memory": string;
  readonly "audit-retention": string;
  readonly "deleted-retention": string;
  readonly "api-v1": string;
  readonly "api-v1-sunset": string | undefined;
  readonly "api-v1-successor": string | undefined;
  readonly "encryption-keys-file": string | undefined;
}

interface Server {
  readonly api: ApiServer;
  readonly edge: Edge;
  readonly workspaceId: string;
  readonly rootKey: string;
}

async function startServer(parts: {
  options: DevOptions;
  data: string;
  rootKey: string | undefined;
  io: Io;
  log: Logger;
  closers: Closers;
}): Promise<Server> {
  const { options, data, rootKey: given, io, log, closers } = parts;
  let url = options["database-url"];
  if (url === undefined) {
    log.info({ data }, "starting Postgres");
    const postgres = await startEmbeddedPostgres({ dataDir: join(data, "postgres") });
    closers.add("postgres", () => postgres.stop());
    url = postgres.url;
  }
  writeDevState(data, { pid: process.pid, databaseUrl: url });
  closers.add("dev.json", async () => removeDevState(data));
  const redis = options["redis-url"];
  const edge =
    redis === undefined
      ? createMemoryEdge()
      : await openRedisEdge({
          url: redis,
          eventsUrl: options["events-redis-url"],
          prefix: options["redis-prefix"],
          clientName: "postern-dev",
        });
  closers.add("edge", () => edge.close());
  const api = await start({
    databaseUrl: url,
    analytics: analyticsAddress(options),
    edge,
    host: HOST,
    port: parsePort("api-port", options["api-port"]),
    rootKey: given,
    eventsBytesMax: parseMib("events-memory", options["events-memory"]),
    retentionDays: parseRetention(options),
    v1: parseV1(options),
    encryptionKeys: readEncryptionKeys(options["encryption-keys-file"], io.env) ?? keepEncryptionKeys(data),
    signIn: signInOf(options, log),
    logger: log.child({ part: "api-server" }),
  });
  closers.add("api-server", () => api.close());
  const control = await startDevControl({ refill: (date) => api.refill(date) });
  closers.add("control", () => control.close());
  const { workspaceId, rootKey } = await api.devRootKey(given);
  writeDevState(data, { pid: process.pid, databaseUrl: url, apiUrl: api.url, rootKey, control: control.state });
  return { api, edge, workspaceId, rootKey };
}

async function startGate(parts: {
  options: DevOptions;
  data: string;
  server: Server;
  log: Logger;
  closers: Closers;
}): Promise<Sidecar | undefined> {
  const { options, data, server, log, closers } = parts;
  if (options.manifests === undefined) {
    log.info("--manifests is not set, so only the API runs, without a sidecar");
    return undefined;
  }
  const operator = await startOperator({
    source: { kind: "directory", dir: resolve(options.manifests), stateDir: join(data, "operator") },
    apiUrl: server.api.url,
    keys: { rootKey: () => server.rootKey },
    cluster: "dev",
    logger: log.child({ part: "operator" }),
  });
  closers.add("operator", () => operator.close());
  await operator.ready();
  const policyId = await findPolicy(operator, options.policy);
  if (policyId === undefined) {
    log.warn("no ApiKeyPolicy is active, so no sidecar runs; fix the manifests and restart");
    return undefined;
  }
  const gate = await startSidecar({
    edge: server.edge,
    workspaceId: server.workspaceId,
    policyId,
    upstream: parseHttpUrl("upstream", options.upstream),
    listen: { host: HOST, port: parsePort("sidecar-port", options["sidecar-port"]) },
    admin: { host: HOST, port: parsePort("admin-port", options["admin-port"]) },
    podId: hostname(),
    region: "dev",
    errorDocsUrl: server.api.url,
    logger: log.child({ part: "sidecar" }),
  });
  closers.add("sidecar", () => gate.close());
  await untilReady(gate, log);
  return gate;
}

/** Waits until the relay has projected the policy from Postgres and the sidecar has received it. */
async function untilReady({ adminUrl }: Sidecar, log: Logger): Promise<void> {
  const deadline = Date.now() + FIRST_POLICY_DEADLINE_MS;
  while ((await fetch(`${adminUrl}/readyz`)).status !== 200) {
    if (Date.now() > deadline)
      return log.warn("the sidecar has not received its policy yet and rejects requests until then");
    await new Promise((done) => setTimeout(done, 10));
  }
}

/** Returns the id of the policy to enforce once it is reconciled; `undefined` if no policy is reconciled before the deadline. */
async function findPolicy(operator: Operator, wanted: string | undefined): Promise<string | undefined> {
  const deadline = Date.now() + FIRST_POLICY_DEADLINE_MS;
  for (;;) {
    const policies = operator
      .statuses()
      .filter((object) => object.kind === "ApiKeyPolicy")
      .filter((object) => wanted === undefined || `${object.namespace}/${object.name}` === wanted);
    const active = policies.find((object) => typeof object.status?.policyId === "string");
    if (active !== undefined) return String(active.status?.policyId);
    if (policies.length === 0 || Date.now() > deadline) return undefined;
    await new Promise((done) => setTimeout(done, 10));
  }
}

function announce(ready: ReadyLine, asJson: boolean, io: Io): void {
  if (asJson) {
    io.out(JSON.stringify(ready));
    return;
  }
  io.out("");
  io.out("Postern is running.");
  io.out(`  API       ${ready.apiUrl}/v2/…   (browse ${ready.apiUrl}/docs)`);
  io.out(`  dashboard ${ready.apiUrl}/dashboard/`);
  io.out(`  sidecar   ${ready.sidecarUrl ?? "none: the manifests have no active ApiKeyPolicy"}`);
  if (ready.adminUrl !== null) io.out(`  probes    ${ready.adminUrl}/readyz, ${ready.adminUrl}/metrics`);
  io.out(`  root key  ${ready.rootKey}   (shown only once)`);
  io.out(`  dashboard ${ready.dashboardUrl}   (signs in once; \`postern dashboard link\` creates another)`);
  io.out("");
}
