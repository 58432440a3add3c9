import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript, within } from "../redis/script.ts";
import type { EventBatch, Sent } from "./buffer.ts";

const SEND_TIMEOUT_MS = 5_000;
/** What a workspace may write before an api-server has granted it room. */
export const FIRST_ROOM_BYTES = 128 * 1024;
/** The overhead of an entry, and the most that an allocator rounds up by. */
export const ENTRY_COST_BYTES = 512;
export const COST_PER_BYTE = 1.25;

/**
 * Appends one entry, a batch of events with one line of JSON each, if there is room. KEYS: the stream, the room. ARGV: the room
 * of a workspace that has none yet, the cost of an entry, the cost of a byte, the events. Reply: 1 appended, 0 no room.
 * The cost is an estimate that is rather too high; an api-server compares it with the memory in use and corrects the room.
 */
export const APPEND = defineScript(`
local room = redis.pcall('GET', KEYS[2])
room = type(room) == 'string' and tonumber(room) or false
if not room then
  room = tonumber(ARGV[1])
  redis.call('SET', KEYS[2], ARGV[1])
end
local cost = math.ceil(#ARGV[4] * tonumber(ARGV[3])) + tonumber(ARGV[2])
-- Not a number is not less either.
if not (room >= cost) then return 0 end
redis.call('XADD', KEYS[1], '*', 'e', ARGV[4])
redis.call('DECRBY', KEYS[2], string.format('%.0f', cost))
return 1
`);

/** Appends a batch to the stream of its workspace. Throws when the store does not answer. */
export async function appendToRedis(client: RedisClient, keys: RedisKeys, batch: EventBatch): Promise<Sent> {
  const { workspaceId, lines } = batch;
  const withoutLast = lines.subarray(0, -1);
  const args = [FIRST_ROOM_BYTES, ENTRY_COST_BYTES, COST_PER_BYTE, withoutLast];
  const named = [keys.events(workspaceId), keys.eventsRoom(workspaceId)];
  const reply = await within(SEND_TIMEOUT_MS, runScript(client, APPEND, 2, [...named, ...args]));
  return reply === 1 ? "stored" : "refused";
}
