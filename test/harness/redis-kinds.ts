import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { redisBinary } from "./parts/redis.ts";
import { freePort } from "./ports.ts";
import { type RunningProcess, startProcess } from "./process.ts";
import { type OwnRedis, startOwnRedis } from "./redis.ts";
import { waitFor } from "./wait.ts";

/* Redis as users have it: with a replica and sentinels, and a cluster of several masters. All real servers, on 127.0.0.1. */

export interface Replicated {
  /** As `--redis-url` takes it. */
  readonly url: string;
  /** The server that is the master now; of a cluster, the one that has the slot of this key. */
  master(key?: string): Promise<OwnRedis>;
  /** Makes a replica the master once it has all that the master has, as before maintenance. */
  switchOver(key?: string): Promise<void>;
  stop(): Promise<void>;
}

const MASTER_NAME = "postern";
const SENTINELS = 3;

export async function startSentinels(): Promise<Replicated> {
  const first = await startOwnRedis();
  const second = await startOwnRedis({ args: ["--replicaof", "127.0.0.1", String(first.port)] });
  const servers = [first, second];
  await waitFor("the replica to follow", async () => (await ask<RoleOfMaster>(first, "ROLE"))[2].length === 1);
  const sentinels = await Promise.all(Array.from({ length: SENTINELS }, () => startSentinel(first.port)));
  const [sentinel, ...others] = sentinels;
  if (sentinel === undefined) throw new Error("there are sentinels");
  const portOfMaster = async (): Promise<number> => {
    const [, port] = await ask<[string, string]>(sentinel, "SENTINEL", "get-master-addr-by-name", MASTER_NAME);
    return Number(port);
  };
  const knowsOthers = async (): Promise<boolean> => {
    const fields = await ask<string[]>(sentinel, "SENTINEL", "master", MASTER_NAME);
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
    url: `redis://127.0.0.1:${sentinel.port}?sentinel=${MASTER_NAME}&sentinels=${more}`,
    master,
    switchOver: async () => {
      const before = await master();
      const replica = servers.find((server) => server !== before);
      if (replica === undefined) throw new Error("there is a replica");
      // The sentinels do not wait until the replica has everything, so nothing is written meanwhile.
      await ask(before, "CLIENT", "PAUSE", "10000", "WRITE");
      const offsetOf = async (server: OwnRedis): Promise<string | undefined> =>
        /^master_repl_offset:(\d+)/m.exec(await ask(server, "INFO", "replication"))?.[1];
      await waitFor(
        "the replica to have everything",
        async () => (await offsetOf(before)) === (await offsetOf(replica)),
      );
      await ask(sentinel, "SENTINEL", "FAILOVER", MASTER_NAME);
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

async function startSentinel(masterPort: number): Promise<Sentinel> {
  const dir = await mkdtemp(join(tmpdir(), "postern-sentinel-"));
  const port = await freePort();
  const settings = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${dir}`,
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 1000`,
    `sentinel failover-timeout ${MASTER_NAME} 5000`,
  ];
  await writeFile(join(dir, "sentinel.conf"), `${settings.join("\n")}\n`);
  const args = [join(dir, "sentinel.conf"), "--sentinel"];
  const process: RunningProcess = await startProcess(await redisBinary(), args, { readyLine: /\+monitor master/ });
  return {
    port,
    stop: async () => {
      await process.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const MASTERS = 3;

/** Three masters with a replica each. */
export async function startCluster(): Promise<Replicated> {
  const start = async () =>
    startOwnRedis({
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
  /** The ports of the nodes that have a slot: the master first. */
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
  const master = async (key = ""): Promise<OwnRedis> => serverOf((await portsOf(key, await anyAlive(nodes)))[0]);
  return {
    url: `redis://127.0.0.1:${first.port}?cluster=true`,
    master,
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

async function anyAlive(nodes: readonly OwnRedis[]): Promise<OwnRedis> {
  for (const node of nodes) {
    const answer = await ask(node, "PING").catch(() => undefined);
    if (answer === "PONG") return node;
  }
  throw new Error("no node answers");
}

/** Its role, the offset of its replication, and its replicas. */
type RoleOfMaster = readonly [string, number, readonly unknown[]];

/** `Reply` is the shape that replies of the command have. */
async function ask<Reply = string>(
  { port }: { readonly port: number },
  name: string,
  ...args: string[]
): Promise<Reply> {
  const redis = new Redis({
    port,
    host: "127.0.0.1",
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
}
