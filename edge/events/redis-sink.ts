import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript, within } from "../redis/script.ts";
import type { EventBatch, Sent } from "./buffer.ts";

const SEND_TIMEOUT_MS = 5_000;
/** What a workspace may write before an api-server has granted it room. */
export const FIRST_ROOM_BYTES = 128 * 1024;
/**
 * Larger batches are appended by a command of their own. Measured, a script takes 80 µs of Redis to be given 64 KiB, which is more than all
 * that is done with them; a second command takes 10 µs.
 */
const BY_SCRIPT_BYTES = 4 * 1024;
/** The overhead of an entry, and the most that an allocator rounds up by. */
export const ENTRY_COST_BYTES = 512;
export const COST_PER_BYTE = 1.25;

/**
 * `take_room(key, first, cost)`: whether there is room, which is then taken. Where there is none yet, or no number, it becomes `first`. By
 * DECRBY alone, so that a gate's user need not be allowed to write anything but numbers.
 */
const TAKE_FROM = `
local function take_room(key, first, cost)
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
 * Appends one entry, a batch of events with one line of JSON each, if there is room. KEYS: the stream, the room. ARGV: the room
 * of a workspace that has none yet, the cost of an entry, the cost of a byte, the events. Reply: 1 appended, 0 no room.
 * The cost is an estimate that is rather too high; an api-server compares it with the memory in use and corrects the room.
 */
export const APPEND = defineScript(
  { keys: 2, args: 4, argBytes: BY_SCRIPT_BYTES },
  `${TAKE_FROM}
local cost = math.ceil(#ARGV[4] * tonumber(ARGV[3])) + tonumber(ARGV[2])
if not take_room(KEYS[2], ARGV[1], string.format('%.0f', cost)) then return 0 end
redis.call('XADD', KEYS[1], '*', 'e', ARGV[4])
return 1
`,
);

/**
 * Takes the room that an entry will need. KEYS: the room. ARGV: the room of a workspace that has none yet, the cost of the entry.
 * Reply: 1 taken, 0 no room.
 */
export const TAKE_ROOM = defineScript(
  { keys: 1, args: 2 },
  `${TAKE_FROM}
return take_room(KEYS[1], ARGV[1], ARGV[2]) and 1 or 0
`,
);

/**
 * Appends a batch to the stream of its workspace. Throws when the store does not answer. Room that was taken for an entry that did not
 * come about is given back when an api-server next compares the room with the memory in use.
 */
export async function appendToRedis(client: RedisClient, keys: RedisKeys, batch: EventBatch): Promise<Sent> {
  return within(SEND_TIMEOUT_MS, append(client, keys, batch));
}

async function append(client: RedisClient, keys: RedisKeys, { workspaceId, lines }: EventBatch): Promise<Sent> {
  const withoutLast = lines.subarray(0, -1);
  const [stream, room] = [keys.events(workspaceId), keys.eventsRoom(workspaceId)];
  if (withoutLast.length <= BY_SCRIPT_BYTES) {
    const args = [FIRST_ROOM_BYTES, ENTRY_COST_BYTES, COST_PER_BYTE, withoutLast];
    return (await runScript(client, APPEND, 2, [stream, room, ...args])) === 1 ? "stored" : "refused";
  }
  const cost = Math.ceil(withoutLast.length * COST_PER_BYTE) + ENTRY_COST_BYTES;
  if ((await runScript(client, TAKE_ROOM, 1, [room, FIRST_ROOM_BYTES, cost])) !== 1) return "refused";
  await client.xadd(stream, "*", "e", withoutLast);
  return "stored";
}
