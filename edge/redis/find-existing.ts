import { isCluster, type RedisClient } from "./connect.ts";

/** One command with more keys would keep others waiting. */
const TOGETHER_MAX = 1_000;

/**
 * Which of these keys exist, in order. While none does, which is the rule when each is a place for something to do, it costs one
 * command for a thousand of them; only when some exist is each asked for. On a cluster each is asked for at once: a command is of
 * one slot.
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
