import { isCluster, type RedisClient } from "./connect.ts";

/** What the shared store says of itself; of a cluster, what its first master says, and the sums of all masters. */
export interface StoreDescription {
  /** Of Valkey or of Redis; "unknown" when it says neither. */
  readonly version: string;
  /** Of all nodes. */
  readonly memoryBytes: number;
  /** Of all nodes; 0: no limit. */
  readonly memoryMaxBytes: number;
  /** The policy's name as Redis has it; left out when it does not say it. */
  readonly evictionPolicy?: string;
  /**
   * `none`, `snapshots`, `append-only file`, or `append-only file and snapshots`. Our user may not read the settings of Redis, so
   * `snapshots` is what has been seen: one was written since the start, or one with keys was read at it.
   */
  readonly persistence: string;
  /** `master` or `slave`, as Redis calls them. */
  readonly role: string;
  /** How many masters there are; 1 without a cluster. */
  readonly nodes: number;
  /** Unix ms, to a second. */
  readonly startedAt: number;
  /** Connections to all nodes, ours too. */
  readonly clients: number;
}

/**
 * Asks every master by `INFO`. Rejects when one does not answer, and when no master of a cluster is known. It waits as long as the
 * connection does: a deadline is the caller's.
 */
export async function describeRedis(client: RedisClient): Promise<StoreDescription> {
  const nodes = isCluster(client) ? client.nodes("master") : [client];
  if (nodes.length === 0) throw new Error("no master of the cluster is connected");
  const infos = await Promise.all(nodes.map((node) => node.info()));
  const [first = ""] = infos;
  const sum = (field: string): number => infos.reduce((all, info) => all + numberOf(info, field), 0);
  const evictionPolicy = textOf(first, "maxmemory_policy");
  const hasFile = textOf(first, "aof_enabled") === "1";
  // Before version 7 saves are not counted. What an append-only file begins with is loaded as a snapshot is.
  const signs = ["rdb_saves", "rdb_last_cow_size", ...(hasFile ? [] : ["rdb_last_load_keys_loaded"])];
  const snapshots = signs.some((field) => numberOf(first, field) > 0);
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
