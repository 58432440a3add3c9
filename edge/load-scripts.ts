import type { Redis } from "ioredis";
import { CONSUME, GIVE_BACK, SPEND_CREDITS, SYNC_COUNTS } from "./counters/scripts.ts";
import { APPEND, TAKE_ROOM } from "./events/redis-sink.ts";
import { COUNT_ALIVE, REPORT } from "./pods/redis.ts";
import { POSITION } from "./projection/scripts.ts";
import { isCluster, type RedisClient } from "./redis/connect.ts";
import type { Script } from "./redis/script.ts";

/** The scripts of pods. A pod's user may run a loaded script, but not load one. */
export const POD_SCRIPTS: readonly Script[] = [
  CONSUME,
  GIVE_BACK,
  SPEND_CREDITS,
  SYNC_COUNTS,
  POSITION,
  REPORT,
  COUNT_ALIVE,
  APPEND,
  TAKE_ROOM,
];

/**
 * Loads the scripts of pods into every server that has lost them, for example by a restart. Throws when a master does not answer. Replicas get
 * them too: one may become the master, and a client that asks nothing of its slots does not learn that for a long time.
 */
export async function loadPodScripts(client: RedisClient): Promise<void> {
  if (!isCluster(client)) return await loadInto(client);
  const masters = new Set(client.nodes("master"));
  const load = async (node: Redis): Promise<void> => {
    const loaded = loadInto(node);
    // A replica that is away gets them when it is back.
    await (masters.has(node) ? loaded : loaded.catch(() => undefined));
  };
  await Promise.all(client.nodes("all").map(load));
}

async function loadInto(node: Redis): Promise<void> {
  const known = (await node.script("EXISTS", ...POD_SCRIPTS.map(({ sha }) => sha))) as number[];
  const missing = POD_SCRIPTS.filter((_, i) => known[i] !== 1);
  await Promise.all(missing.map(({ lua }) => node.script("LOAD", lua)));
}
