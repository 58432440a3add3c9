import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript, within } from "../redis/script.ts";
import type { EventBatch, Sent } from "./buffer.ts";

const SEND_TIMEOUT_MS = 5_000;
/** Quota of a workspace before an api-server grants one. */
export const FIRST_ROOM_BYTES = 128 * 1024;
/**
 * Maximum size of a batch that a script appends; a separate command appends larger batches. As measured, passing 64 KiB to a script costs
 * Redis 80 µs, more than all other work on the batch. A second command costs 10 µs.
 */
const BY_SCRIPT_BYTES = 4 * 1024;
/** Overhead of an entry, including the maximum rounding of the allocator. */
export const ENTRY_COST_BYTES = 512;
export const COST_PER_BYTE = 1.25;

/**
 * `take_quota(key, first, cost)`: takes `cost` bytes of quota and returns whether enough was available. A missing or invalid quota becomes
 * `first`. The function uses only DECRBY, so that a gate's user may write only numbers.
 */
const TAKE_FROM = `
local function take_quota(key, first, cost)
  if redis.call('EXISTS', key) == 0 then redis.call('DECRBY', key, '-' .. first) end
  local left = redis.pcall('DECRBY', key, cost)
  if type(left) ~= 'number' then
    redis.call('UNLINK', key)
    redis.call('DECRBY', key, '-' .. first)
    left = redis.call('DECRBY', key, cost)
  end
  if left >= 0 then return true end
  redis.call('DECRBY', key, '-' .. cost)
  return false
end
`;

/**
 * Appends one entry if the quota suffices. The entry is a batch of events, one line of JSON each. KEYS: the stream, the quota. ARGV: the
 * default quota, the cost of an entry, the cost of a byte, the events. Reply: 1 appended, 0 over quota. The cost estimate is deliberately
 * high; an api-server compares it with the memory in use and corrects the quota.
 */
export const APPEND = defineScript(
  { keys: 2, args: 4, argBytes: BY_SCRIPT_BYTES },
  `${TAKE_FROM}
local cost = math.ceil(#ARGV[4] * tonumber(ARGV[3])) + tonumber(ARGV[2])
if not take_quota(KEYS[2], ARGV[1], string.format('%.0f', cost)) then return 0 end
redis.call('XADD', KEYS[1], '*', 'e', ARGV[4])
return 1
`,
);

/**
 * Takes quota for an entry that is appended later. KEYS: the quota. ARGV: the default quota, the cost of the entry. Reply: 1 taken, 0 over
 * quota.
 */
export const TAKE_QUOTA = defineScript(
  { keys: 1, args: 2 },
  `${TAKE_FROM}
return take_quota(KEYS[1], ARGV[1], ARGV[2]) and 1 or 0
`,
);

/**
 * Appends a batch to the stream of its workspace. Throws if the store does not respond. If an entry fails after its quota was taken, an
 * api-server restores the quota when it next measures the memory in use.
 */
export async function appendToRedis(client: RedisClient, keys: RedisKeys, batch: EventBatch): Promise<Sent> {
  return within(SEND_TIMEOUT_MS, append(client, keys, batch));
}

async function append(client: RedisClient, keys: RedisKeys, { workspaceId, lines }: EventBatch): Promise<Sent> {
  const withoutLast = lines.subarray(0, -1);
  const [stream, room] = [keys.events(workspaceId), keys.eventsQuota(workspaceId)];
  if (withoutLast.length <= BY_SCRIPT_BYTES) {
    const args = [FIRST_ROOM_BYTES, ENTRY_COST_BYTES, COST_PER_BYTE, withoutLast];
    return (await runScript(client, APPEND, 2, [stream, room, ...args])) === 1 ? "stored" : "refused";
  }
  const cost = Math.ceil(withoutLast.length * COST_PER_BYTE) + ENTRY_COST_BYTES;
  if ((await runScript(client, TAKE_QUOTA, 1, [room, FIRST_ROOM_BYTES, cost])) !== 1) return "refused";
  await client.xadd(stream, "*", "e", withoutLast);
  return "stored";
}
