import { isCluster, type RedisClient } from "./connect.ts";

/** What the shared store says of itself; of a cluster, what its first node says, and the sums of all. */
export interface StoreDescription {
  readonly version: string;
  readonly memoryBytes: number;
  /** 0: no limit. */
  readonly memoryMaxBytes: number;
  readonly evictionPolicy?: string;
  /** `none`, `snapshots`, `append-only file`, or both. */
  readonly persistence: string;
  /** `master` or `slave`, as Redis calls them. */
  readonly role: string;
  readonly nodes: number;
  readonly startedAt: number;
  readonly clients: number;
}

/** Asks every node. Rejects when one does not answer; the caller has the deadline. */
export async function describeRedis(client: RedisClient): Promise<StoreDescription> {
  const nodes = isCluster(client) ? client.nodes("master") : [client];
  const infos = await Promise.all(nodes.map((node) => node.info()));
  const [first = ""] = infos;
  const sum = (field: string): number => infos.reduce((all, info) => all + numberOf(info, field), 0);
  const evictionPolicy = textOf(first, "maxmemory_policy");
  const hasFile = textOf(first, "aof_enabled") === "1";
  const savedAt = numberOf(first, "rdb_last_save_time");
  const snapshots = savedAt > 0 && numberOf(first, "rdb_saves") + numberOf(first, "rdb_last_cow_size") > 0;
  const kinds = [...(hasFile ? ["append-only file"] : []), ...(snapshots ? ["snapshots"] : [])];
  return {
    version: textOf(first, "valkey_version") ?? textOf(first, "redis_version") ?? "unknown",
    memoryBytes: sum("used_memory"),
    memoryMaxBytes: sum("maxmemory"),
    ...(evictionPolicy === undefined ? {} : { evictionPolicy }),
    persistence: kinds.length === 0 ? "none" : kinds.join(" and "),
    role: textOf(first, "role") ?? "unknown",
    nodes: nodes.length,
    startedAt: Date.now() - numberOf(first, "uptime_in_seconds") * 1000,
    clients: sum("connected_clients"),
  };
}

const textOf = (info: string, field: string): string | undefined => new RegExp(`^${field}:(\\S+)`, "m").exec(info)?.[1];

const numberOf = (info: string, field: string): number => Number(textOf(info, field) ?? 0) || 0;
