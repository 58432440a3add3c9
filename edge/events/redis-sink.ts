import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript, within } from "../redis/script.ts";
import type { EventBatch } from "./buffer.ts";

const STREAM_MAX = 1_000_000;
const SEND_TIMEOUT_MS = 5_000;

/**
 * KEYS: the stream. ARGV: how many entries it keeps, about; the events, a line of JSON each, which holds no line feed. A
 * script, so that a batch is one command; one argument, because framing hundreds of them costs a sidecar more than the JSON.
 */
const APPEND = defineScript(`
local count = 0
for event in string.gmatch(ARGV[2], '[^\\n]+') do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'e', event)
  count = count + 1
end
return count
`);

/** Appends a batch to the stream of its workspace. Throws when the store does not answer. */
export async function appendToRedis(
  client: RedisClient,
  keys: RedisKeys,
  { workspaceId, lines }: EventBatch,
  streamMax: number = STREAM_MAX,
): Promise<void> {
  await within(SEND_TIMEOUT_MS, runScript(client, APPEND, 1, [keys.events(workspaceId), streamMax, lines]));
}
