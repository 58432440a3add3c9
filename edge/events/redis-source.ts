import { isCluster, type RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { SHARED_LUA } from "../redis/lua.ts";
import { defineScript, runScript, type Script } from "../redis/script.ts";
import {
  type Batch,
  type BatchLimits,
  type EventSource,
  EventsUnavailable,
  type KeptBudget,
  type StreamDepth,
  StreamRejected,
  type StreamsSeen,
  type TakenEvents,
} from "./contract.ts";
import { RedisEventBudget } from "./redis-budget.ts";
import { COST_PER_BYTE, ENTRY_COST_BYTES } from "./redis-sink.ts";
import { EventLines } from "./schema.ts";

/*
 * Reads the event streams as a member of the consumer group `ingest`. Entries are acknowledged and removed after the handler has returned.
 * If the handler throws, this reader reads the same entries again on its next call. The entries of a dead reader are claimed by another
 * reader after a minute. A reader leaves its groups when it closes; a killed reader is removed by the others.
 *
 * A reader holds the entries of one batch at a time and reads no others until they are acknowledged. A dead reader's entries are claimed
 * together, by a reader that holds no entries. So every delivery of a batch has the same entries, and a database can recognize it by its
 * content.
 *
 * Gates write these streams, and a compromised gate can write anything: a key of another type, invalid entries of any size and id, no
 * group. So a script reads one entry at a time until the batch is full, which bounds the cost of one call. Each call concerns one
 * workspace, except `INSPECT`, which reads the size of each stream and attributes each failure to its workspace.
 */

const GROUP = "ingest";
/** Idle time after which the entries of a reader may be claimed. */
const CLAIM_AFTER_MS = 60_000;
/** Number of claim intervals without activity after which a reader is removed. If it is alive after all, it joins again. */
const GONE_AFTER_CLAIMS = 5;
/** Approximate bytes per batch: some 1,500 events, which Postgres stores in less than 0.1 s. */
const BATCH_BYTES = 512 * 1024;
/** Maximum bytes of an entry. An entry is a batch, or an event with 20 tags of 512 characters, each written as a six-character escape. */
const ENTRY_BYTES_MAX = 80 * 1024;
/**
 * Maximum entries of a batch. Older sidecars write one event per entry, and a script over more entries would block other clients for too
 * long.
 */
const ENTRIES_MAX = 500;
/** Maximum bytes of an entry id: two 64-bit numbers, a hyphen and a space. */
const ENTRY_ID_BYTES_MAX = 42;
/** Maximum streams per script call. */
const STREAMS_MAX = 500;

/**
 * Inspects streams. KEYS: stream and quota of each workspace. Reply: the store's time in ms, then for each non-empty stream its index, the
 * number of entries, the bytes, the id of the first entry, and the first bytes of the quota; for each key that is not a stream (it is
 * removed) its index, -1, and its type; for each unreadable one its index, -2, and the error.
 */
export const INSPECT = defineScript(
  { keys: 2 * STREAMS_MAX },
  `${SHARED_LUA}
local seen = {string.format('%.0f', now_ms())}
for place = 1, #KEYS / 2 do
  local key = KEYS[2 * place - 1]
  local length = redis.pcall('XLEN', key)
  if type(length) == 'number' then
    if length > 0 then
      local first = redis.call('XRANGE', key, '-', '+', 'COUNT', '1')
      local quota = redis.pcall('GETRANGE', KEYS[2 * place], '0', '16')
      seen[#seen + 1] = {place, length, redis.call('MEMORY', 'USAGE', key), first[1][1], quota}
    end
  elseif string.find(length.err, 'WRONGTYPE', 1, true) then
    seen[#seen + 1] = {place, -1, redis.call('TYPE', key).ok}
    redis.call('UNLINK', key)
  else
    seen[#seen + 1] = {place, -2, length.err}
  end
end
return seen
`,
);

/**
 * Reads a batch for a reader, as one text, because parsing a reply of thousands of small values costs the api-server more than all other
 * work on an event. Oversized entries are not returned. KEYS: the stream. ARGV: the group, the reader, '>' for new entries or '0' for those
 * that this reader already holds, the bytes at which the batch ends, the maximum bytes of an entry, the number of entries at which the
 * batch ends. Reply: the number of entries, the number of those that were not events, their ids separated by spaces, the events separated
 * by line feeds, the bytes of the events; nil if there are no entries.
 */
export const TAKE = defineScript(
  { keys: 1, args: 6, argBytes: 512 },
  `
local ids, events, bytes, unreadable, from = {}, {}, 0, 0, ARGV[3]
for _ = 1, tonumber(ARGV[6]) do
  local read = redis.pcall('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', '1', 'STREAMS', KEYS[1], from)
  if read and read.err then
    if #ids == 0 then return read end
    break
  end
  local entry = read and read[1] and read[1][2][1]
  if not entry then break end
  ids[#ids + 1] = entry[1]
  if from ~= '>' then from = entry[1] end
  -- An entry without fields was trimmed after it had been read; it only needs the acknowledgement.
  if entry[2] then
    local event
    for f = 1, #entry[2], 2 do
      if entry[2][f] == 'e' then event = entry[2][f + 1] end
    end
    if event and #event <= tonumber(ARGV[5]) then
      events[#events + 1] = event
      bytes = bytes + #event
    else
      unreadable = unreadable + 1
    end
  end
  if bytes >= tonumber(ARGV[4]) then break end
end
if #ids == 0 then return false end
return {#ids, unreadable, table.concat(ids, ' '), table.concat(events, '\\n'), bytes}
`,
);

/**
 * Claims all entries of one dead reader, which form one batch, without reading their content. The claiming reader then reads them as its
 * own pending entries. KEYS: the stream. ARGV: the group, the claiming reader, the minimum idle time in ms, the maximum number of entries.
 * Reply: the number of claimed entries.
 */
export const CLAIM = defineScript(
  { keys: 1, args: 4, argBytes: 512 },
  `
local idle = redis.pcall('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[3], '-', '+', '1')
if idle.err then return idle end
if #idle == 0 then return 0 end
local ids = {}
for _, entry in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[4], idle[1][2])) do
  ids[#ids + 1] = entry[1]
end
redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], '0', unpack(ids))
return #ids
`,
);

/**
 * Removes readers without entries: the one that leaves, and inactive ones. Removing a reader that has pending entries would lose them, so
 * the check and the removal are one atomic step. KEYS: streams. ARGV: the group, the reader that leaves ('' for none), the idle time in ms
 * after which a reader counts as dead. Reply: the number of removed readers.
 */
export const TIDY = defineScript(
  { keys: STREAMS_MAX, args: 3, argBytes: 512 },
  `
local removed = 0
for _, key in ipairs(KEYS) do
  local readers = redis.pcall('XINFO', 'CONSUMERS', key, ARGV[1])
  for _, reader in ipairs(readers.err and {} or readers) do
    local is = {}
    for f = 1, #reader, 2 do is[reader[f]] = reader[f + 1] end
    if is.pending == 0 and (is.name == ARGV[2] or is.idle > tonumber(ARGV[3])) then
      redis.call('XGROUP', 'DELCONSUMER', key, ARGV[1], is.name)
      removed = removed + 1
    end
  end
end
return removed
`,
);

/**
 * Acknowledges entries and removes them, which frees quota. An entry with an id in the far future harms a stream even after its removal: it
 * would prevent every later entry, or make the stream look young indefinitely. So an empty stream that has contained such an id is deleted
 * and starts again. KEYS: the stream, the quota. ARGV: the group, the ids separated by spaces, the bytes of quota to free.
 */
export const FINISH = defineScript(
  { keys: 2, args: 3, argBytes: ENTRIES_MAX * ENTRY_ID_BYTES_MAX },
  `${SHARED_LUA}
local ids = {}
for id in string.gmatch(ARGV[2], '%S+') do ids[#ids + 1] = id end
redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
local removed = redis.call('XDEL', KEYS[1], unpack(ids))
if removed > 0 then redis.pcall('INCRBY', KEYS[2], ARGV[3]) end
if redis.call('XLEN', KEYS[1]) == 0 then
  local stream = redis.call('XINFO', 'STREAM', KEYS[1])
  for f = 1, #stream, 2 do
    if stream[f] == 'last-generated-id' then
      local ms = tonumber(string.match(stream[f + 1], '^%d+'))
      if ms > now_ms() + 86400000 then redis.call('UNLINK', KEYS[1]) end
    end
  end
end
return removed
`,
);

export interface RedisEventSourceOptions {
  readonly keys: RedisKeys;
  /** Name of the consumer, unique to this process. */
  readonly consumer: string;
  /** Whether this Redis also contains the counters. Default: true. */
  readonly isShared?: boolean;
  readonly claimAfterMs?: number;
}

/** State of this reader for one workspace's stream. */
interface Reading {
  /** Whether this reader may have unacknowledged entries. */
  holds: boolean;
  /** Last claim, as `performance.now()`. */
  claimedAtMs: number;
}

export class RedisEventSource implements EventSource {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #consumer: string;
  readonly #claimAfterMs: number;
  readonly #readings = new Map<string, Reading>();
  readonly #budget: RedisEventBudget;
  /** Workspaces whose streams have had entries since quotas were last distributed. */
  #active = new Set<string>();

  /** The caller owns `client` and closes it. */
  constructor(client: RedisClient, options: RedisEventSourceOptions) {
    const { keys, consumer, isShared = true, claimAfterMs = CLAIM_AFTER_MS } = options;
    this.#client = client;
    this.#keys = keys;
    this.#consumer = consumer;
    this.#claimAfterMs = claimAfterMs;
    this.#budget = new RedisEventBudget(client, { keys, holder: consumer, isShared });
  }

  async measure(workspaceIds: readonly string[]): Promise<StreamsSeen> {
    const size = isCluster(this.#client) ? 1 : STREAMS_MAX;
    const groups: (readonly string[])[] = [];
    for (let at = 0; at < workspaceIds.length; at += size) groups.push(workspaceIds.slice(at, at + size));
    const measured = await Promise.all(groups.map((group) => this.#measure(group)));
    return {
      depths: measured.flatMap(({ depths }) => depths),
      setAside: measured.flatMap(({ setAside }) => setAside),
      failed: measured.flatMap(({ failed }) => failed),
    };
  }

  async take(
    workspaceId: string,
    handle: (events: TakenEvents) => Promise<void>,
    { bytesEnough = BATCH_BYTES }: BatchLimits = {},
  ): Promise<Batch> {
    const reading = this.#readingOf(workspaceId);
    const stream = this.#keys.events(workspaceId);
    const taken = await this.#read(stream, reading, bytesEnough);
    if (taken === undefined) return { entries: 0, unreadable: 0 };
    if (taken.events !== "") await handle(new EventLines(workspaceId, taken.events));
    const evicted = Math.ceil(taken.bytes * COST_PER_BYTE) + taken.entries * ENTRY_COST_BYTES;
    await this.#ask(FINISH, stream, [GROUP, taken.ids, evicted], [this.#keys.eventsQuota(workspaceId)]);
    reading.holds = false;
    return { entries: taken.entries, unreadable: taken.unreadable };
  }

  async keepWithin(workspaceIds: readonly string[], bytesMax: number): Promise<KeptBudget | undefined> {
    const active = this.#active;
    this.#active = new Set();
    return this.#budget.keep(workspaceIds, { wantedBytes: bytesMax, active });
  }

  /** Leaves every group that this reader has read from, and releases the lease. */
  async close(): Promise<void> {
    const streams = [...this.#readings.keys()].map((id) => this.#keys.events(id));
    const size = isCluster(this.#client) ? 1 : STREAMS_MAX;
    const work: Promise<unknown>[] = [this.#budget.leave()];
    for (let at = 0; at < streams.length; at += size) {
      const group = streams.slice(at, at + size);
      const args = [...group, GROUP, this.#consumer, this.#claimAfterMs * GONE_AFTER_CLAIMS];
      work.push(runScript(this.#client, TIDY, group.length, args));
    }
    await Promise.all(work);
  }

  async #measure(workspaceIds: readonly string[]): Promise<StreamsSeen> {
    const depths: StreamDepth[] = [];
    const setAside: { workspaceId: string; type: string }[] = [];
    const failed: { workspaceId: string; error: Error }[] = [];
    const named = workspaceIds.flatMap((id) => [this.#keys.events(id), this.#keys.eventsQuota(id)]);
    const reply = await answered(runScript(this.#client, INSPECT, named.length, named));
    const [nowMs, ...seen] = reply as [
      string,
      ...[place: number, entries: number, is: unknown, firstId: string, quota: unknown][],
    ];
    for (const [place, entries, is, firstId, quota] of seen) {
      const workspaceId = workspaceIds[place - 1] ?? "";
      if (entries === -1) setAside.push({ workspaceId, type: String(is) });
      else if (entries === -2) failed.push({ workspaceId, error: new StreamRejected(String(is)) });
      else {
        const ageMs = Math.max(0, Number(nowMs) - Number(firstId.split("-")[0]));
        // A compromised gate can write any value into the streams.
        const capacityBytes = Number.parseInt(String(quota), 10) || 0;
        depths.push({ workspaceId, entries, bytes: Number(is), capacityBytes, ageMs });
        this.#active.add(workspaceId);
      }
    }
    return { depths, setAside, failed };
  }

  #readingOf(workspaceId: string): Reading {
    let reading = this.#readings.get(workspaceId);
    if (reading === undefined) {
      reading = { holds: false, claimedAtMs: Number.NEGATIVE_INFINITY };
      this.#readings.set(workspaceId, reading);
    }
    return reading;
  }

  /**
   * Reads the entries that this reader has not acknowledged yet. If there are none, claims the entries of a dead reader, or else reads new
   * entries. Returns `undefined` if the stream has no entries.
   */
  async #read(stream: string, reading: Reading, bytesEnough: number): Promise<Taken | undefined> {
    if (!reading.holds) await this.#claim(stream, reading);
    if (reading.holds) {
      // Reads the complete batch, even if the consumer that first read it used another batch size.
      const held = await this.#readFrom(stream, "0", Number.MAX_SAFE_INTEGER);
      if (held !== undefined) return held;
    }
    // Sets the flag before the read. If the reply is lost, this reader thus reads the same entries again before any others.
    reading.holds = true;
    const fresh = await this.#readFrom(stream, ">", bytesEnough);
    reading.holds = fresh !== undefined;
    return fresh;
  }

  async #readFrom(stream: string, from: "0" | ">", bytesEnough: number): Promise<Taken | undefined> {
    const args = [GROUP, this.#consumer, from, bytesEnough, ENTRY_BYTES_MAX, ENTRIES_MAX];
    const reply = await this.#ask(TAKE, stream, args);
    if (reply === null) return undefined;
    const [entries, unreadable, ids, events, bytes] = reply as [number, number, string, string, number];
    return { entries, unreadable, ids, events, bytes };
  }

  /** Claims the entries of a dead reader, if any. Attempts are at least half of the minimum idle time apart. */
  async #claim(stream: string, reading: Reading): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - reading.claimedAtMs < this.#claimAfterMs / 2) return;
    const reply = await this.#ask(CLAIM, stream, [GROUP, this.#consumer, this.#claimAfterMs, ENTRIES_MAX]);
    if (reply === 0) reading.claimedAtMs = nowMs;
    else reading.holds = true;
    await this.#ask(TIDY, stream, [GROUP, "", this.#claimAfterMs * GONE_AFTER_CLAIMS]);
  }

  /** Runs a script. If the store was emptied or the group destroyed, creates the group and runs the script again. */
  async #ask(
    script: Script,
    stream: string,
    args: readonly (string | number)[],
    otherKeys: readonly string[] = [],
  ): Promise<unknown> {
    const argv = [stream, ...otherKeys, ...args];
    const run = () => answered(runScript(this.#client, script, 1 + otherKeys.length, argv));
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof StreamRejected) || !/\bNOGROUP\b/.test(error.message)) throw error;
    }
    try {
      await answered(this.#client.xgroup("CREATE", stream, GROUP, "0", "MKSTREAM"));
    } catch (error) {
      if (!(error instanceof StreamRejected) || !error.message.startsWith("BUSYGROUP")) throw error;
    }
    return run();
  }
}

/** Returns the reply. Rejects with `StreamRejected` if the server rejects the command, otherwise with `EventsUnavailable`. */
async function answered<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (cause) {
    if (cause instanceof Error && cause.name === "ReplyError") throw new StreamRejected(cause.message, { cause });
    throw new EventsUnavailable("reading events from Redis", { cause });
  }
}

interface Taken {
  readonly entries: number;
  readonly unreadable: number;
  /** Entry ids, separated by spaces. */
  readonly ids: string;
  /** Events, separated by line feeds. */
  readonly events: string;
  readonly bytes: number;
}
