import { isCluster, type RedisClient } from "./connect.ts";

/** Maximum number of keys per command, because a command with more keys would block other clients for too long. */
const TOGETHER_MAX = 1_000;

/**
 * Returns, in order, whether each of the given keys exists. Each key is a work queue, and usually none exists. One command per 1,000 keys
 * then suffices; keys are checked one by one only if some exist and others do not. On a cluster, keys are always checked one by one,
 * because a command must stay in one slot.
 */
export async function findExisting(client: RedisClient, keys: readonly string[]): Promise<boolean[]> {
  const found: boolean[] = [];
  for (let at = 0; at < keys.length; at += TOGETHER_MAX) {
    const some = keys.slice(at, at + TOGETHER_MAX);
    const count = isCluster(client) ? undefined : await client.exists(...some);
    if (count === 0 || count === some.length) found.push(...some.map(() => count > 0));
    else found.push(...(await Promise.all(some.map(async (key) => (await client.exists(key)) > 0))));
  }
  return found;
}
