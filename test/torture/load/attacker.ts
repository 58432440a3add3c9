import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import type { Random } from "../random.ts";
import type { World } from "../world/world.ts";

/*
 * A tenant whose Redis user is compromised: it may write anything below its own prefix, and does.
 */

const USER = "attacker";
const PASSWORD = "known-to-the-attacker";
const FLOOD = 1_000;
const PAUSE_MS = 1_500;
const TIMEOUT_MS = 3_000;

/** Continues for this time, also while Redis is down. */
export async function attack(
  { world, random, signal }: { world: World; random: Random; signal: AbortSignal },
  forMs: number,
): Promise<void> {
  const untilMs = performance.now() + forMs;
  while (performance.now() < untilMs && !signal.aborted) {
    // Redis may be down, or may have lost the user: the next attempt creates it again.
    await attackOnce(world, random).catch(() => undefined);
    await sleep(random.pauseMs(PAUSE_MS));
  }
}

async function attackOnce(world: World, random: Random): Promise<void> {
  const { id } = world.workspaces.attacker;
  const prefix = `ps:${id}`;
  await world.redis.raw.acl("SETUSER", USER, "on", `>${PASSWORD}`, `~${prefix}:*`, "+@all", "-@dangerous");
  const url = new URL(world.redis.url);
  [url.username, url.password] = [USER, PASSWORD];
  const options = { retryStrategy: () => null, commandTimeout: TIMEOUT_MS, enableReadyCheck: false };
  const redis = new Redis(url.href, options).on("error", () => undefined);
  try {
    await replaceTypes(redis, { prefix, id, random });
    await flood(redis, prefix, random);
  } finally {
    redis.disconnect();
  }
}

/** Writes other types where lists, sets, hashes and streams are expected. */
async function replaceTypes(
  redis: Redis,
  { prefix, id, random }: { prefix: string; id: string; random: Random },
): Promise<void> {
  const places = ["events", "cr-load", "cr-dirty", `changes:{${id}}`, `history:{${id}}`, `state:{${id}}`, "w"];
  for (const place of random.shuffled(places).slice(0, 4)) {
    const key = `${prefix}:${place}`;
    const made = redis.multi().del(key);
    if (random.chance(0.5)) made.set(key, "\0not what it was\xff");
    else made.lpush(key, "1", "\0");
    await made.exec();
  }
}

/** Writes a lot of invalid data, of the right type so that it is accepted. */
async function flood(redis: Redis, prefix: string, random: Random): Promise<void> {
  const batch = redis.pipeline();
  for (let n = 0; n < FLOOD; n++) {
    const name = random.chance(0.5) ? `key_nobody_${n}` : `\0${n}\xff`;
    batch.sadd(`${prefix}:cr-load`, name);
    batch.sadd(`${prefix}:cr-dirty`, name);
    if (n % 10 === 0) batch.hset(`${prefix}:cr:{${name}}`, { rev: "x", granted: "-1", spent: "1e400", open: "maybe" });
    batch.xadd(`${prefix}:events`, "*", "e", random.chance(0.5) ? "{" : `{"type":"verification","id":"${n}\0"}`);
  }
  // A reply may be an error about the type.
  await batch.exec();
}
