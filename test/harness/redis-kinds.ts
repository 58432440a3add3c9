import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import type { TestCertificate } from "./certificate.ts";
import { redisBinary } from "./parts/redis.ts";
import { freePort } from "./ports.ts";
import { type RunningProcess, startProcess } from "./process.ts";
import { type OwnRedis, redisTlsArguments, startOwnRedis } from "./redis.ts";
import { waitFor } from "./wait.ts";

/* Redis with a replica and sentinels, and a cluster of several masters, all real servers on 127.0.0.1. */

export interface KindOptions {
  /** Server program, also used as sentinel. Default: Redis. */
  readonly program?: string | undefined;
  /** Default: without TLS. Sentinels also listen without TLS. */
  readonly tls?: TestCertificate | undefined;
}

export interface Replicated {
  /** Value for `--redis-url`. */
  readonly url: string;
  /** Returns the current master; in a cluster, the master of the slot of this key. */
  master(key?: string): Promise<OwnRedis>;
  /** Promotes a replica once it has all data of the master, as before maintenance. */
  switchOver(key?: string): Promise<void>;
  /** Runs a command on each server, including replicas. */
  atAll(name: string, ...args: string[]): Promise<void>;
  /** Runs a command on one server. */
  at(server: OwnRedis, name: string, ...args: string[]): Promise<unknown>;
  stop(): Promise<void>;
}

const MASTER_NAME = "postern";
const SENTINELS = 3;

export async function startSentinels({ program, tls }: KindOptions = {}): Promise<Replicated> {
  const ask = askerOf(tls);
  const first = await startOwnRedis({ program, tls });
  const second = await startOwnRedis({ program, tls, args: ["--replicaof", "127.0.0.1", String(first.port)] });
  const servers = [first, second];
  await waitFor("the replica to follow", async () => (await ask<RoleOfMaster>(first, "ROLE"))[2].length === 1);
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, () => startSentinel(first.port, { program, tls })),
  );
  const [sentinel, ...others] = sentinels;
  if (sentinel === undefined) throw new Error("there are sentinels");
  const portOfMaster = async (): Promise<number> => {
    const [, port] = await askPlain<[string, string]>(sentinel, "SENTINEL", "get-master-addr-by-name", MASTER_NAME);
    return Number(port);
  };
  const knowsOthers = async (): Promise<boolean> => {
    const fields = await askPlain<string[]>(sentinel, "SENTINEL", "master", MASTER_NAME);
    const fieldOf = (name: string) => fields[fields.indexOf(name) + 1];
    return fieldOf("num-other-sentinels") === String(SENTINELS - 1) && fieldOf("num-slaves") === "1";
  };
  await waitFor("the sentinels to know each other and the replica", knowsOthers, { deadlineMs: 20_000 });
  const master = async (): Promise<OwnRedis> => {
    const port = await portOfMaster();
    const found = servers.find((server) => server.port === port);
    if (found === undefined) throw new Error(`no server of ours has the port ${port}`);
    return found;
  };
  const more = others.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return {
    url: `${schemeOf(tls)}://127.0.0.1:${sentinel.port}?sentinel=${MASTER_NAME}&sentinels=${more}`,
    master,
    at: ask,
    atAll: async (...command) => void (await Promise.all(servers.map((server) => ask(server, ...command)))),
    switchOver: async () => {
      const before = await master();
      const replica = servers.find((server) => server !== before);
      if (replica === undefined) throw new Error("there is a replica");
      // Sentinels do not wait for the replica, so writes are paused.
      await ask(before, "CLIENT", "PAUSE", "10000", "WRITE");
      const offsetOf = async (server: OwnRedis): Promise<string | undefined> =>
        /^master_repl_offset:(\d+)/m.exec(await ask(server, "INFO", "replication"))?.[1];
      await waitFor(
        "the replica to have everything",
        async () => (await offsetOf(before)) === (await offsetOf(replica)),
      );
      await askPlain(sentinel, "SENTINEL", "FAILOVER", MASTER_NAME);
      await waitFor("the sentinels to agree", async () => (await portOfMaster()) !== before.port, {
        deadlineMs: 30_000,
      });
    },
    stop: async () => {
      await Promise.all(sentinels.map((each) => each.stop()));
      await Promise.all(servers.map((each) => each.stop()));
    },
  };
}

interface Sentinel {
  readonly port: number;
  stop(): Promise<void>;
}

async function startSentinel(masterPort: number, { program, tls }: KindOptions): Promise<Sentinel> {
  const dir = await mkdtemp(join(tmpdir(), "postern-sentinel-"));
  const port = await freePort();
  const settings = [
    `port ${port}`,
    // Sentinels use TLS among servers, and a second port without TLS for clients.
    ...(tls === undefined ? [] : [`tls-port ${await freePort()}`, ...redisTlsSettings(tls)]),
    "bind 127.0.0.1",
    `dir ${dir}`,
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 1000`,
    `sentinel failover-timeout ${MASTER_NAME} 5000`,
  ];
  await writeFile(join(dir, "sentinel.conf"), `${settings.join("\n")}\n`);
  const args = [join(dir, "sentinel.conf"), "--sentinel"];
  const process: RunningProcess = await startProcess(program ?? (await redisBinary()), args, {
    readyLine: /\+monitor master/,
  });
  return {
    port,
    stop: async () => {
      await process.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const MASTERS = 3;

/** Starts three masters with a replica each. */
export async function startCluster({ program, tls }: KindOptions = {}): Promise<Replicated> {
  const ask = askerOf(tls);
  const start = async () =>
    startOwnRedis({
      program,
      tls,
      args: [
        ...["--cluster-enabled", "yes", "--cluster-port", String(await freePort())],
        ...["--cluster-announce-ip", "127.0.0.1", "--cluster-node-timeout", "1000"],
        ...["--cluster-replica-validity-factor", "0"],
      ],
    });
  const nodes: OwnRedis[] = [];
  for (let i = 0; i < 2 * MASTERS; i++) nodes.push(await start());
  const [first] = nodes;
  if (first === undefined) throw new Error("there are nodes");
  const idOf = async (node: OwnRedis): Promise<string> => ask(node, "CLUSTER", "MYID");
  const busPortOf = async (node: OwnRedis): Promise<string> =>
    /@(\d+)/.exec(await ask(node, "CLUSTER", "NODES"))?.[1] ?? "";
  for (const node of nodes.slice(1)) {
    await ask(first, "CLUSTER", "MEET", "127.0.0.1", String(node.port), await busPortOf(node));
  }
  const perMaster = Math.ceil(16_384 / MASTERS);
  for (const [i, node] of nodes.slice(0, MASTERS).entries()) {
    const last = Math.min(16_383, (i + 1) * perMaster - 1);
    await ask(node, "CLUSTER", "ADDSLOTSRANGE", String(i * perMaster), String(last));
  }
  const areAll = async (says: string): Promise<boolean> => {
    const infos: string[] = await Promise.all(nodes.map((node) => ask(node, "CLUSTER", "INFO")));
    return infos.every((info) => info.includes(says));
  };
  await waitFor("all nodes to know each other", () => areAll(`cluster_known_nodes:${nodes.length}`), LONG);
  for (const [i, replica] of nodes.slice(MASTERS).entries()) {
    const id = await idOf(nodes[i] as OwnRedis);
    await waitFor(
      "a replica to know its master",
      async () => (await ask(replica, "CLUSTER", "REPLICATE", id)) === "OK",
      LONG,
    );
  }
  await waitFor("the cluster to be ok", () => areAll("cluster_state:ok"), LONG);
  await waitFor(
    "each master to have its replica",
    async () => {
      const roles = await Promise.all(nodes.slice(0, MASTERS).map((node) => ask<RoleOfMaster>(node, "ROLE")));
      return roles.every((role) => role[2].length === 1);
    },
    LONG,
  );
  /** Returns the ports of the nodes of a slot, master first. */
  const portsOf = async (key: string, from: OwnRedis): Promise<number[]> => {
    const slot = Number(await ask(from, "CLUSTER", "KEYSLOT", key));
    const ranges = await ask<[number, number, ...[string, number][]][]>(from, "CLUSTER", "SLOTS");
    const [, , ...of] = ranges.find(([low, high]) => low <= slot && slot <= high) ?? [0, 0];
    return of.map(([, port]) => port);
  };
  const serverOf = (port: number | undefined): OwnRedis => {
    const found = nodes.find((node) => node.port === port);
    if (found === undefined) throw new Error(`no node of ours has the port ${port}`);
    return found;
  };
  const master = async (key = ""): Promise<OwnRedis> => serverOf((await portsOf(key, await anyAlive(nodes, ask)))[0]);
  return {
    url: `${schemeOf(tls)}://127.0.0.1:${first.port}?cluster=true`,
    master,
    at: ask,
    atAll: async (...command) => void (await Promise.all(nodes.map((node) => ask(node, ...command)))),
    switchOver: async (key = "") => {
      const before = await master(key);
      const [, replica] = await portsOf(key, before);
      await ask(serverOf(replica), "CLUSTER", "FAILOVER");
      await waitFor("the replica to be the master", async () => (await master(key)).port !== before.port, LONG);
    },
    stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))),
  };
}

const LONG = { deadlineMs: 30_000 };

async function anyAlive(nodes: readonly OwnRedis[], ask: Asker): Promise<OwnRedis> {
  for (const node of nodes) {
    const response = await ask(node, "PING").catch(() => undefined);
    if (response === "PONG") return node;
  }
  throw new Error("no node answers");
}

/** Reply of ROLE on a master: role, replication offset and replicas. */
type RoleOfMaster = readonly [string, number, readonly unknown[]];

const schemeOf = (tls: TestCertificate | undefined): string => (tls === undefined ? "redis" : "rediss");

const redisTlsSettings = (tls: TestCertificate): string[] => {
  const words = redisTlsArguments(tls);
  return words.flatMap((word, i) => (i % 2 === 0 ? [`${word.slice(2)} ${words[i + 1]}`] : []));
};

/** `Reply` is the type of the command's replies. */
type Asker = <Reply = string>(server: { readonly port: number }, name: string, ...args: string[]) => Promise<Reply>;

const askerOf =
  (tls?: TestCertificate): Asker =>
  async <Reply>({ port }: { readonly port: number }, name: string, ...args: string[]) => {
    const redis = new Redis({
      port,
      host: "127.0.0.1",
      ...(tls === undefined ? {} : { tls: { ca: tls.cert } }),
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
    });
    redis.on("error", () => undefined);
    try {
      await redis.connect();
      return (await redis.call(name, ...args)) as Reply;
    } finally {
      redis.disconnect();
    }
  };
const askPlain = askerOf();
