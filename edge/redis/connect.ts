import { Cluster, Redis, type RedisOptions } from "ioredis";
import { backoffMs } from "../../core/backoff.ts";
import { watchReplyOrder } from "./reply-order.ts";

/** A single Redis, or a cluster, where a script call may touch only keys of one slot. */
export type RedisClient = Redis | Cluster;

/** Replaces `instanceof Cluster`, because the bundles load that class only on demand. */
export const isCluster = (client: RedisClient): client is Cluster => !(client instanceof Redis);

const CONNECT_TIMEOUT_MS = 2_000;
const SLOTS_REFRESH_MS = 5_000;
/** Duration of silence after which a connection with replies outstanding counts as lost. */
const SILENCE_MAX_MS = 5_000;
const RECONNECT = { firstMs: 25, maxMs: 2_000, random: Math.random };

/** Returns the delay before a reconnect. `attempt` counts from 0. */
export const reconnectDelayMs = (attempt: number): number => backoffMs(attempt + 1, RECONNECT);

export interface RedisAddress {
  /**
   * `redis://` or `rediss://`, with user and password. With `?cluster=true` the server is the first node of a cluster. With
   * `?sentinel=NAME` it is a sentinel that knows the master NAME; `&sentinels=HOST:PORT,HOST:PORT` adds more sentinels. A function is
   * called for each new connection, so that user and password may change while the process runs; the server may not change.
   */
  readonly url: string | (() => string);
  /** TLS options for `rediss://`. A function is called for each new connection. */
  readonly tls?: (() => RedisTls) | undefined;
}

/** TLS files, in PEM. */
export interface RedisTls {
  /** CA bundle that verifies the server certificate. Default: the system's CAs. */
  readonly ca?: string | undefined;
  /** Client certificate. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/**
 * Connects in the background and retries indefinitely. A command fails immediately while disconnected, and when its connection is lost. No
 * command is queued or sent twice, because a call that consumes units must not be repeated.
 */
export function connectRedis(options: RedisAddress & { readonly clientName: string }): RedisClient {
  const { url, wantsCluster, sentinel } = parseUrl(options.url);
  const common = { ...commonOptions(options.clientName), socketTimeout: SILENCE_MAX_MS };
  const secrets = currentSecrets(options);
  const client = wantsCluster
    ? new Cluster([{ host: url.hostname, port: Number(url.port || DEFAULT_PORT) }], {
        enableOfflineQueue: false,
        // ioredis would resend a command after its connection was lost, although Redis may have executed the command.
        retryDelayOnFailover: 0,
        clusterRetryStrategy: reconnectDelayMs,
        slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
        // Refreshes the slot map periodically, because an idle client would otherwise miss failovers and new replicas.
        slotsRefreshInterval: SLOTS_REFRESH_MS,
        scaleReads: "master",
        redisOptions: Object.defineProperties(common, secrets),
      })
    : openOne(url, sentinel, { ...common, enableOfflineQueue: false, retryStrategy: reconnectDelayMs });
  const prepare = (connection: Redis): void => {
    Object.defineProperties(connection.options, secrets);
    watchReplyOrder(connection);
  };
  // A cluster client copies its options only once, and opens each connection when it is first used.
  if (isCluster(client)) client.on("+node", prepare);
  else prepare(client);
  // Callers get the errors of their commands. This listener is required because ioredis would otherwise write errors to the console.
  client.on("error", () => {});
  return client;
}

/** Resolves once connected, after any number of attempts, or when the signal is aborted. */
export async function whenReady(client: RedisClient, signal: AbortSignal): Promise<void> {
  if (client.status === "ready" || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  client.once("ready", done);
  signal.addEventListener("abort", done, { once: true });
  await promise;
  client.off("ready", done);
  signal.removeEventListener("abort", done);
}

/** Returns an id that changes when the server, or a master of a cluster, restarts or is replaced. Throws if a server is unreachable. */
export async function readRunId(client: RedisClient): Promise<string> {
  const masters = isCluster(client) ? client.nodes("master") : [client];
  const infos = await Promise.all(masters.map((node) => node.info("server")));
  const runIds = infos.map((info) => /^run_id:(\w+)/m.exec(info)?.[1] ?? "");
  return runIds.sort().join("+");
}

/** Opens a connection for blocking reads. The caller connects and reconnects it. Commands are not retried. */
export function connectForBlocking(
  options: RedisAddress & { readonly clientName: string; readonly key: string },
  near: RedisClient,
): Redis {
  const { url, sentinel } = parseUrl(options.url);
  const base = {
    ...commonOptions(options.clientName),
    enableOfflineQueue: false,
    lazyConnect: true,
    retryStrategy: null,
  };
  const client = isCluster(near)
    ? new Redis({ ...masterOf(near, options.key), ...base })
    : openOne(url, sentinel, { ...base, sentinelRetryStrategy: () => null });
  Object.defineProperties(client.options, currentSecrets(options));
  client.on("error", () => {});
  return client;
}

const DEFAULT_PORT = 6379;
const DEFAULT_SENTINEL_PORT = 26379;

/** Redis options without `replyMapping`, which would change the types of replies that this module relies on. */
type Options = Omit<RedisOptions, "replyMapping">;

interface SentinelAddress {
  /** Name of the master in the sentinels' configuration. */
  readonly name: string;
  readonly sentinels: { readonly host: string; readonly port: number }[];
}

/** Opens a connection. With sentinels, each new connection asks them for the current master. */
function openOne(url: URL, sentinel: SentinelAddress | undefined, options: Options): Redis {
  if (sentinel === undefined) return new Redis(url.href, options);
  const asked: Options = { ...sentinel, role: "master", sentinelCommandTimeout: CONNECT_TIMEOUT_MS };
  if (url.protocol === "rediss:") asked.enableTLSForSentinelMode = true;
  return new Redis({ sentinelRetryStrategy: reconnectDelayMs, ...options, ...asked });
}

function parseUrl(address: RedisAddress["url"]): {
  url: URL;
  wantsCluster: boolean;
  sentinel: SentinelAddress | undefined;
} {
  const url = new URL(typeof address === "string" ? address : address());
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") {
    throw new Error(`a Redis URL begins with redis:// or rediss://, not with ${url.protocol}//`);
  }
  const wantsCluster = url.searchParams.get("cluster") === "true";
  url.searchParams.delete("cluster");
  const name = url.searchParams.get("sentinel");
  const others = url.searchParams.get("sentinels")?.split(",") ?? [];
  url.searchParams.delete("sentinel");
  url.searchParams.delete("sentinels");
  if (name === null) return { url, wantsCluster, sentinel: undefined };
  if (wantsCluster) throw new Error("a Redis URL names sentinels or a cluster, not both");
  const sentinels = [url.host, ...others].map((each) => {
    const { hostname: host, port } = new URL(`redis://${each}`);
    return { host, port: Number(port || DEFAULT_SENTINEL_PORT) };
  });
  return { url, wantsCluster, sentinel: { name, sentinels } };
}

/** Returns options as getters. ioredis reads them at every connect, and then needs the current values. */
function currentSecrets({ url, tls }: RedisAddress): PropertyDescriptorMap {
  const now = (): URL => parseUrl(url).url;
  const read = (get: () => unknown): PropertyDescriptor => ({ get, enumerable: true, configurable: true });
  return {
    username: read(() => (now().username === "" ? undefined : decodeURIComponent(now().username))),
    password: read(() => (now().password === "" ? undefined : decodeURIComponent(now().password))),
    ...(now().protocol === "rediss:" ? { tls: read(() => present(tls?.() ?? {})) } : {}),
  };
}

const present = (tls: RedisTls): RedisTls =>
  Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));

function commonOptions(clientName: string) {
  return {
    connectionName: clientName,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    protocol: 2,
  } as const;
}

function masterOf(cluster: Cluster, key: string): { host: string; port: number } {
  const address = cluster.slots[keySlot(key)]?.[0];
  if (address === undefined) throw new Error("the cluster's slots are not known yet");
  const colon = address.lastIndexOf(":");
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}

/** Returns the slot of a key, as defined by the Redis Cluster specification: CRC16 (XMODEM) of the hash tag, modulo 16384. */
export function keySlot(key: string): number {
  const open = key.indexOf("{");
  const close = open === -1 ? -1 : key.indexOf("}", open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc % 16384;
}
