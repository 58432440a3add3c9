import type { Redis } from "ioredis";
import { CONSUME, GIVE_BACK, SPEND_CREDITS, SYNC_COUNTS } from "./counters/scripts.ts";
import { APPEND, TAKE_QUOTA } from "./events/redis-sink.ts";
import { COUNT_ALIVE, REPORT } from "./pods/redis.ts";
import { POSITION } from "./projection/scripts.ts";
import { isCluster, type RedisClient } from "./redis/connect.ts";
import type { Script } from "./redis/script.ts";

/** Scripts that gates run. A gate's Redis user may run a loaded script but may not load one. */
export const POD_SCRIPTS: readonly Script[] = [
  CONSUME,
  GIVE_BACK,
  SPEND_CREDITS,
  SYNC_COUNTS,
  POSITION,
  REPORT,
  COUNT_ALIVE,
  APPEND,
  TAKE_QUOTA,
];

/**
 * Loads the gate scripts into every server that has lost them, for example after a restart. Loads them into replicas too, because a replica
 * may be promoted, and an idle client notices a promotion late. Throws if a master does not respond.
 */
export async function loadPodScripts(client: RedisClient): Promise<void> {
  if (!isCluster(client)) return await loadInto(client);
  const masters = new Set(client.nodes("master"));
  const load = async (node: Redis): Promise<void> => {
    const loaded = loadInto(node);
    // Ignores errors of replicas; an unreachable replica gets the scripts later.
    await (masters.has(node) ? loaded : loaded.catch(() => undefined));
  };
  await Promise.all(client.nodes("all").map(load));
}

async function loadInto(node: Redis): Promise<void> {
  const known = (await node.script("EXISTS", ...POD_SCRIPTS.map(({ sha }) => sha))) as number[];
  const missing = POD_SCRIPTS.filter((_, i) => known[i] !== 1);
  await Promise.all(missing.map(({ lua }) => node.script("LOAD", lua)));
}
