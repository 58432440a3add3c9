import { isCluster, type RedisClient } from "./connect.ts";

/**
 * Summary of the shared store. For a cluster, memory and connections are sums over all masters; other values come from the first master.
 */
export interface StoreDescription {
  /** Version of Valkey or Redis; "unknown" if neither is reported. */
  readonly version: string;
  /** Memory in use, summed over all nodes. */
  readonly memoryBytes: number;
  /** Memory limit, summed over all nodes; 0 if there is no limit. */
  readonly memoryMaxBytes: number;
  /** `maxmemory-policy` as Redis names it; `undefined` if not reported. */
  readonly evictionPolicy?: string;
  /**
   * `none`, `snapshots`, `append-only file`, or `append-only file and snapshots`. The user has no permission to read the Redis
   * configuration, so `snapshots` is inferred if a snapshot was written since Redis started, or if the snapshot that Redis loaded at
   * startup contained keys.
   */
  readonly persistence: string;
  /** `master` or `slave`, as Redis reports it. */
  readonly role: string;
  /** Number of masters; 1 if Redis is not a cluster. */
  readonly nodes: number;
  /** Start time of the server, Unix ms, with a resolution of 1 s. */
  readonly startedAt: number;
  /** Connections to all nodes, including those of this process. */
  readonly clients: number;
}

/**
 * Sends `INFO` to every master. Rejects if one does not respond, or if no master of a cluster is known. The call has no timeout; the caller
 * sets a deadline.
 */
export async function describeRedis(client: RedisClient): Promise<StoreDescription> {
  const nodes = isCluster(client) ? client.nodes("master") : [client];
  if (nodes.length === 0) throw new Error("no master of the cluster is connected");
  const infos = await Promise.all(nodes.map((node) => node.info()));
  const [first = ""] = infos;
  const sum = (field: string): number => infos.reduce((all, info) => all + numberOf(info, field), 0);
  const evictionPolicy = textOf(first, "maxmemory_policy");
  const hasFile = textOf(first, "aof_enabled") === "1";
  // Redis counts saves only since version 7, so other fields are checked too. With an append-only file, Redis loads its first part like a
  // snapshot, so loaded keys then prove nothing.
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
