import { Cluster, Redis } from "ioredis";
import { backoffMs } from "../../core/backoff.ts";

/** One Redis, or a cluster, where one script call may touch only keys of one slot. */
export type RedisClient = Redis | Cluster;

export const isCluster = (client: RedisClient): client is Cluster => client instanceof Cluster;

const CONNECT_TIMEOUT_MS = 2_000;
/** A connection that owes replies and is silent for this long is dead, even if it was not closed. */
const SILENCE_MAX_MS = 5_000;
const RECONNECT = { firstMs: 25, maxMs: 2_000, random: Math.random };

/** `attempt` counts from 0. */
export const reconnectDelayMs = (attempt: number): number => backoffMs(attempt + 1, RECONNECT);

/**
 * Connects in the background and retries for ever. A command fails at once while there is no connection, or when its connection is
 * lost: nothing is queued and nothing is sent twice, because a consuming call must not be repeated.
 * `url` is `redis://` or `rediss://`; `?cluster=true` in it makes this the first node of a cluster.
 */
export function connectRedis(options: { url: string; clientName: string }): RedisClient {
  const { url, wantsCluster } = parseUrl(options.url);
  const common = { ...commonOptions(options.clientName), socketTimeout: SILENCE_MAX_MS };
  const client = wantsCluster
    ? new Cluster([url.href], {
        enableOfflineQueue: false,
        // By default ioredis sends a command again when its connection was lost. It may have been executed already.
        retryDelayOnFailover: 0,
        clusterRetryStrategy: reconnectDelayMs,
        slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
        scaleReads: "master",
        redisOptions: { ...common, ...credentialsOf(url) },
      })
    : new Redis(url.href, { ...common, enableOfflineQueue: false, retryStrategy: reconnectDelayMs });
  // The caller of a command gets its error; without a listener ioredis would write to the console.
  client.on("error", () => {});
  return client;
}

/** One connection for blocking reads. The caller connects and reconnects it; nothing is retried. */
export function connectForBlocking(
  options: { url: string; clientName: string; key: string },
  near: RedisClient,
): Redis {
  const { url } = parseUrl(options.url);
  const base = {
    ...commonOptions(options.clientName),
    enableOfflineQueue: false,
    lazyConnect: true,
    retryStrategy: null,
  };
  const client = isCluster(near)
    ? new Redis({ ...masterOf(near, options.key), ...credentialsOf(url), ...base })
    : new Redis(url.href, base);
  client.on("error", () => {});
  return client;
}

function parseUrl(text: string): { url: URL; wantsCluster: boolean } {
  const url = new URL(text);
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") {
    throw new Error(`a Redis URL begins with redis:// or rediss://, not with ${url.protocol}//`);
  }
  const wantsCluster = url.searchParams.get("cluster") === "true";
  url.searchParams.delete("cluster");
  return { url, wantsCluster };
}

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

function credentialsOf(url: URL): { username?: string; password?: string; tls?: Record<string, never> } {
  return {
    ...(url.username === "" ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === "" ? {} : { password: decodeURIComponent(url.password) }),
    ...(url.protocol === "rediss:" ? { tls: {} } : {}),
  };
}

function masterOf(cluster: Cluster, key: string): { host: string; port: number } {
  const address = cluster.slots[keySlot(key)]?.[0];
  if (address === undefined) throw new Error("the cluster's slots are not known yet");
  const colon = address.lastIndexOf(":");
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}

/** CRC16 (XMODEM) of the hash tag, modulo 16384: the slot of a key, by the Redis Cluster specification. */
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
