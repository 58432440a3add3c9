import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript, within } from "../redis/script.ts";
import type { EventBatch } from "./buffer.ts";
import type { EventSource, TakenEvents } from "./contract.ts";
import { EventLines } from "./schema.ts";

const STREAM_MAX = 1_000_000;
const SEND_TIMEOUT_MS = 5_000;
const GROUP = "ingest";
/** An entry that a reader holds for longer was left by a dead one. */
const CLAIM_AFTER_MS = 60_000;

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

/**
 * Takes new entries for a reader, as one text: taken apart by the client, a reply of thousands of little ones costs the
 * api-server more than all else that it does for an event. What is larger than any event of ours is not handed out.
 * KEYS: the stream. ARGV: the group, the reader, how many at most, how many bytes an event may have.
 * Reply: how many entries, their ids with a space between, the events with a line feed between; nil when there are none.
 */
const TAKE = defineScript(`
local read = redis.pcall('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', ARGV[3], 'STREAMS', KEYS[1], '>')
if not read or read.err then return read end
local ids, events = {}, {}
for _, entry in ipairs(read[1][2]) do
  ids[#ids + 1] = entry[1]
  local event = entry[2] and entry[2][2]
  if event and #event <= tonumber(ARGV[4]) then events[#events + 1] = event end
end
return {#ids, table.concat(ids, ' '), table.concat(events, '\\n')}
`);

/** Acknowledges entries and removes them. KEYS: the stream. ARGV: the group, the ids with a space between. */
const FINISH = defineScript(`
local ids = {}
for id in string.gmatch(ARGV[2], '%S+') do ids[#ids + 1] = id end
redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
return redis.call('XDEL', KEYS[1], unpack(ids))
`);

/** 20 tags of 512 characters, each written as an escape of six, and room for the rest. */
const EVENT_BYTES_MAX = 80 * 1024;
/** A script that goes through more entries would keep others waiting; and Lua cannot unpack very many more. */
const ENTRIES_MAX = 1_000;

type Entry = [id: string, fields: string[] | null];

/** Entries of one stream. */
interface Taken {
  readonly count: number;
  /** With a space between. */
  readonly ids: string;
  /** With a line feed between. */
  readonly events: string;
}

/**
 * Reads as one of the consumer group `ingest`. Entries are acknowledged and removed after `handle` has returned; when it
 * throws, or this process dies, they are handed out again after a minute.
 */
export class RedisEventSource implements EventSource {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #consumer: string;
  readonly #claimAfterMs: number;
  readonly #claimedAtMs = new Map<string, number>();
  readonly #knownGroups = new Set<string>();

  constructor(
    client: RedisClient,
    { keys, consumer, claimAfterMs = CLAIM_AFTER_MS }: { keys: RedisKeys; consumer: string; claimAfterMs?: number },
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#consumer = consumer;
    this.#claimAfterMs = claimAfterMs;
  }

  async take(
    workspaceIds: readonly string[],
    max: number,
    handle: (events: TakenEvents) => Promise<void>,
  ): Promise<number> {
    let count = 0;
    for (const workspaceId of workspaceIds) {
      while (count < max) {
        const wanted = Math.min(max - count, ENTRIES_MAX);
        const taken = await this.#read(workspaceId, wanted);
        if (taken === undefined) break;
        if (taken.events !== "") await handle(new EventLines(workspaceId, taken.events));
        await runScript(this.#client, FINISH, 1, [this.#keys.events(workspaceId), GROUP, taken.ids]);
        count += taken.count;
        if (taken.count < wanted) break;
      }
    }
    return count;
  }

  /** undefined: there are none now. */
  async #read(workspaceId: string, max: number): Promise<Taken | undefined> {
    const stream = this.#keys.events(workspaceId);
    try {
      if (!this.#knownGroups.has(workspaceId)) await this.#makeGroup(workspaceId);
      const claimed = await this.#claim(workspaceId, max);
      if (claimed !== undefined) return claimed;
      const reply = await runScript(this.#client, TAKE, 1, [stream, GROUP, this.#consumer, max, EVENT_BYTES_MAX]);
      if (reply === null) return undefined;
      const [count, ids, events] = reply as [number, string, string];
      return { count, ids, events };
    } catch (error) {
      // The store was emptied: the group is made anew on the next call.
      if (!(error instanceof Error && error.message.startsWith("NOGROUP"))) throw error;
      this.#knownGroups.delete(workspaceId);
      return undefined;
    }
  }

  async #makeGroup(workspaceId: string): Promise<void> {
    try {
      await this.#client.xgroup("CREATE", this.#keys.events(workspaceId), GROUP, "0", "MKSTREAM");
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("BUSYGROUP"))) throw error;
    }
    this.#knownGroups.add(workspaceId);
  }

  /** Looks for what dead readers left, half as often as an entry has to lie before it counts as left. */
  async #claim(workspaceId: string, max: number): Promise<Taken | undefined> {
    const nowMs = performance.now();
    const claimedAtMs = this.#claimedAtMs.get(workspaceId);
    if (claimedAtMs !== undefined && nowMs - claimedAtMs < this.#claimAfterMs / 2) return undefined;
    const stream = this.#keys.events(workspaceId);
    const idleMs = this.#claimAfterMs;
    const reply = await this.#client.xautoclaim(stream, GROUP, this.#consumer, idleMs, "0", "COUNT", max);
    const entries = (reply as [string, Entry[]])[1];
    // A full batch means that there may be more, so the next call looks again.
    if (entries.length < max) this.#claimedAtMs.set(workspaceId, nowMs);
    if (entries.length === 0) return undefined;
    const events = entries.map(([, fields]) => fields?.[1] ?? "").filter((event) => event.length <= EVENT_BYTES_MAX);
    return { count: entries.length, ids: entries.map(([id]) => id).join(" "), events: events.join("\n") };
  }
}
