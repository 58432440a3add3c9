import { randomUUID } from "node:crypto";
import type { LimitCharge } from "../core/charges.ts";
import { CounterKeys } from "./counters/counter-keys.ts";
import { DenialCache } from "./counters/deny-memory.ts";
import { GuardedCounters } from "./counters/guard.ts";
import { LocalCounters } from "./counters/local.ts";
import { OutageCounts } from "./counters/outage.ts";
import { RedisCounters } from "./counters/redis.ts";
import { RedisClusterCounters } from "./counters/redis-cluster.ts";
import { type SyncItem, syncWithRedis } from "./counters/sync.ts";
import { RedisCreditStore } from "./credits/redis.ts";
import type { Edge, EdgeCounters } from "./edge.ts";
import { BufferedSink } from "./events/buffer.ts";
import { appendToRedis } from "./events/redis-sink.ts";
import { RedisEventSource } from "./events/redis-source.ts";
import { RedisGateUsers } from "./gate-users/redis.ts";
import { loadPodScripts } from "./load-scripts.ts";
import { RedisPodReports } from "./pods/redis.ts";
import { RedisChangeStream } from "./projection/redis-change-stream.ts";
import { RedisRecordSource } from "./projection/redis-source.ts";
import { RedisRecordWriter } from "./projection/redis-writer.ts";
import { RollbackDetector } from "./projection/rollback-detector.ts";
import { connectRedis, isCluster, type RedisAddress, type RedisClient, whenReady } from "./redis/connect.ts";
import { DeadlineClock } from "./redis/deadline-clock.ts";
import { describeRedis } from "./redis/describe.ts";
import { DEFAULT_PREFIX, RedisKeys } from "./redis/keys.ts";
import { within } from "./redis/script.ts";

const PING_TIMEOUT_MS = 1_000;
const CONNECT_WAIT_MS = 1_000;
const CLOCK_ASKED = 5;
/** Maximum time that shutdown waits for an unresponsive store. */
const CLOSE_WAIT_MS = 2_000;

export interface RedisEdgeOptions {
  /** `redis://` or `rediss://`. With `?cluster=true` the server is a node of a cluster. See `RedisAddress`. */
  readonly url: RedisAddress["url"];
  /** A separate Redis for usage events, so that a flood of events cannot use the counters' memory. Default: the same Redis. */
  readonly eventsUrl?: RedisAddress["url"] | undefined;
  /** TLS options of both Redis servers. */
  readonly tls?: RedisAddress["tls"];
  /** First part of every Redis key. Default: `ps`. */
  readonly prefix?: string;
  /** Whether the Redis user may write only the report of its own pod. This applies to users that the control plane creates for gates. */
  readonly reportsAreOwn?: boolean;
  /** Name of the connections in the server's client list. */
  readonly clientName: string;
  /** Maximum time that opening waits for the connection, in ms. Default: 1 s. */
  readonly connectWaitMs?: number | undefined;
  /** Called for each failed connection attempt and each lost connection. */
  readonly onError?: (error: Error) => void;
}

/**
 * Opens the edge over one Redis, or over a cluster if the URL contains `?cluster=true`. Waits 1 s for the connection. If this is not
 * enough, resolves anyway and keeps connecting in the background; each call fails until the connection is open. Counting has its own
 * connection, so that it never waits behind bulk record transfers.
 */
export async function openRedisEdge(options: RedisEdgeOptions): Promise<Edge> {
  const { url, eventsUrl, tls, clientName, onError = () => {} } = options;
  const connect = (address: RedisAddress["url"], name: string): RedisClient => {
    const connection = connectRedis({ url: address, tls, clientName: name }).on("error", onError);
    // A cluster client continues without a failed node, so it reports the errors of single nodes in separate events.
    return isCluster(connection) ? connection.on("node error", onError) : connection;
  };
  const client = connect(url, clientName);
  const counting = connect(url, `${clientName}-counters`);
  const ofEvents = eventsUrl === undefined ? client : connect(eventsUrl, `${clientName}-events`);
  const keys = new RedisKeys(options.prefix);
  const rollbacks = new RollbackDetector();
  const stream = new RedisChangeStream({ client, keys, address: { url, tls }, clientName, rollbacks });
  const sink = new BufferedSink({ send: (batch) => appendToRedis(ofEvents, keys, batch) });
  const readers: RedisEventSource[] = [];
  const openReader = () => {
    const consumer = `${clientName}-${randomUUID()}`;
    const reader = new RedisEventSource(ofEvents, { keys, consumer, isShared: ofEvents === client });
    readers.push(reader);
    return reader;
  };
  const events = openReader();
  const clock = new DeadlineClock();
  // Measures the clock several times before the first counted call and keeps the best result. A process that is busy while it starts reads
  // replies late, which makes single measurements imprecise.
  const learnClock = async () => {
    clock.forget();
    for (let time = 0; time < CLOCK_ASKED; time++) await clock.measure(counting);
  };
  counting.on("ready", () => void learnClock().catch(() => undefined));
  const opened: EdgeCounters[] = [];
  const connections = new Set([client, counting, ofEvents]);
  const connecting = AbortSignal.timeout(options.connectWaitMs ?? CONNECT_WAIT_MS);
  await Promise.all([...connections].map((each) => whenReady(each, connecting)));
  return {
    kind: "redis",
    writer: new RedisRecordWriter(client, keys),
    source: new RedisRecordSource(client, keys, rollbacks),
    stream,
    counters: (options) => {
      const counters = makeCounters(counting, { keys, clock }, options);
      opened.push(counters);
      return counters;
    },
    credits: new RedisCreditStore(client, keys, clock),
    sink,
    events,
    anotherReader: openReader,
    pods: new RedisPodReports(client, keys, { isOwn: options.reportsAreOwn === true }),
    gateUsers: new RedisGateUsers(
      [{ client, store: "all" }, ...(ofEvents === client ? [] : [{ client: ofEvents, store: "events" as const }])],
      { keys, prefix: options.prefix ?? DEFAULT_PREFIX },
    ),
    loadScripts: async () => {
      await Promise.all([...new Set([client, ofEvents])].map((each) => loadPodScripts(each)));
    },
    ping: async () => {
      await within(PING_TIMEOUT_MS, client.ping());
    },
    info: async () => {
      const mastersOf = (store: RedisClient) => (isCluster(store) ? store.nodes("master") : [store]);
      const [memory, ...infos] = await Promise.all([
        mastersOf(client)[0]?.info("memory") ?? "",
        ...[...new Set([client, ofEvents])].flatMap(mastersOf).map((node) => node.info("clients")),
      ]);
      const evictionPolicy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
      const ratios = infos.flatMap((info) => {
        const [used, max] = ["connected_clients", "maxclients"].map((name) =>
          Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1]),
        );
        const ratio = (used ?? 0) / (max ?? 0);
        return Number.isFinite(ratio) ? [ratio] : [];
      });
      return {
        ...(evictionPolicy === undefined ? {} : { evictionPolicy }),
        ...(ratios.length === 0 ? {} : { connectionRatio: Math.max(...ratios) }),
      };
    },
    describe: () => describeRedis(client),
    close: async () => {
      const closing = [sink, stream, ...readers, ...opened].map((each) => each.close());
      await Promise.allSettled([within(CLOSE_WAIT_MS, Promise.allSettled(closing))]);
      for (const each of connections) each.disconnect();
    },
  };
}

function makeCounters(
  client: RedisClient,
  { keys, clock }: { keys: RedisKeys; clock: DeadlineClock },
  options: { timeoutMs: number },
): EdgeCounters {
  const onCluster = isCluster(client);
  const strict = onCluster ? new RedisClusterCounters(client, keys, clock) : new RedisCounters(client, keys, clock);
  const guarded = new GuardedCounters(strict, { ...options, probe: () => client.time() });
  const denials = onCluster ? undefined : new DenialCache(guarded);
  const counterKeys = new CounterKeys(keys);
  const syncing = {
    keyOf: (charge: LimitCharge) => counterKeys.of(charge),
    sync: (items: readonly SyncItem[]) => syncWithRedis(client, items),
  };
  const local = new LocalCounters(denials ?? guarded, syncing);
  const outage = new OutageCounts(syncing);
  return {
    consume: (request) => local.consume(request),
    peek: (limits) => guarded.consume({ limits }, { dryRun: true }),
    check: (charge) => local.check(charge),
    forgetDenials: () => denials?.forget(),
    addLater: (admitted, nowMs) => outage.add(admitted, nowMs),
    overAdmissions: () => ({ async: local.overAdmission, outage: outage.overAdmission }),
    close: () => {
      outage.close();
      return local.close();
    },
  };
}
