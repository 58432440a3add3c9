import { isCluster, type RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { SHARED_LUA } from "../redis/lua.ts";
import { defineScript, runScript, type Script } from "../redis/script.ts";
import {
  type EventSource,
  EventsUnavailable,
  type KeptBudget,
  type Portion,
  type StreamDepth,
  StreamRefused,
  type StreamsSeen,
  type TakenEvents,
} from "./contract.ts";
import { RedisEventBudget } from "./redis-budget.ts";
import { COST_PER_BYTE, ENTRY_COST_BYTES } from "./redis-sink.ts";
import { EventLines } from "./schema.ts";

/*
 * Reads the streams of events as one of the consumer group `ingest`. Entries are acknowledged and removed after the handler
 * has returned. What it refused, this reader reads again at its next turn; what a reader left that died is claimed by
 * another after a minute. A reader is removed from its groups when it closes, and by others when it was killed.
 *
 * Pods write these streams, and a compromised one anything at all: another type of key, no events, entries of any size and
 * id, no group. So a script reads one entry at a time until the portion is full, which bounds what one call can cost;
 * and no call is about two workspaces, but for `look`, which asks for the size of each and minds its failure alone.
 */

const GROUP = "ingest";
/** An entry that a reader holds for longer was left by a dead one. */
const CLAIM_AFTER_MS = 60_000;
/** A reader that was not seen for so many times as long is gone; one that lives and is removed all the same comes again. */
const GONE_AFTER_CLAIMS = 5;
/** Of events that one turn takes, about: some 1,500 of them, which Postgres stores in less than a tenth of a second. */
const PORTION_BYTES = 512 * 1024;
/** A batch, or 20 tags of 512 characters, each written as an escape of six, and room for the rest. */
const ENTRY_BYTES_MAX = 80 * 1024;
/** Of older sidecars an entry is one event. A script that goes through more of them would keep others waiting. */
const ENTRIES_MAX = 500;
/** Streams that one script looks at. */
const LOOK_MAX = 500;

/**
 * KEYS: streams. Reply: the store's time in ms, then of each stream that has entries its place in KEYS, how many there are, how
 * many bytes, and the id of the first; of each key that is no stream, which is removed, its place, -1, and its type;
 * and of each that cannot be asked its place, -2, and why.
 */
const LOOK = defineScript(`${SHARED_LUA}
local seen = {string.format('%.0f', now_ms())}
for place, key in ipairs(KEYS) do
  local length = redis.pcall('XLEN', key)
  if type(length) == 'number' then
    if length > 0 then
      local first = redis.call('XRANGE', key, '-', '+', 'COUNT', '1')
      seen[#seen + 1] = {place, length, redis.call('MEMORY', 'USAGE', key), first[1][1]}
    end
  elseif string.find(length.err, 'WRONGTYPE', 1, true) then
    seen[#seen + 1] = {place, -1, redis.call('TYPE', key).ok}
    redis.call('UNLINK', key)
  else
    seen[#seen + 1] = {place, -2, length.err}
  end
end
return seen
`);

/**
 * Takes a portion for a reader, as one text: taken apart by the client, a reply of thousands of little ones costs the
 * api-server more than all else that it does for an event. What is larger than any entry of ours is not handed out.
 * KEYS: the stream. ARGV: the group, the reader, '>' for entries that are new or '0' for those that this reader
 * holds, how many bytes are enough, how many an entry may have, how many entries are enough.
 * Reply: how many entries, how many of them were no events, their ids with a space between, the events with a line feed
 * between, how many bytes these have; nil when there are none.
 */
const TAKE = defineScript(`
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
  -- Without fields it was trimmed after it had been read; only the acknowledgement is missing.
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
`);

/**
 * Takes over what dead readers left, without their content, which this reader then reads as what it holds.
 * KEYS: the stream. ARGV: the group, the reader, for how long it has to lie, how many at most. Reply: how many.
 */
const CLAIM = defineScript(`
local claimed = redis.pcall('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], '0', 'COUNT', ARGV[4], 'JUSTID')
if claimed.err then return claimed end
return #claimed[2]
`);

/**
 * Removes readers that hold nothing: the one that leaves, and those that have not been seen for long. In one step, because a
 * reader that was removed while it holds entries would take them with it. KEYS: streams. ARGV: the group, the reader that
 * leaves ('' for none), after how many ms a reader counts as gone. Reply: how many were removed.
 */
const TIDY = defineScript(`
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
`);

/**
 * Acknowledges entries and removes them, which makes room. KEYS: the stream, the room. ARGV: the group, the ids with a space
 * between, how much room they make.
 * An entry with an id from the far future, when it is gone, would still keep every later one out or make it look young
 * for ever: an empty stream that has seen one begins anew.
 */
const FINISH = defineScript(`${SHARED_LUA}
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
`);

export interface RedisEventSourceOptions {
  readonly keys: RedisKeys;
  /** Of this process alone. */
  readonly consumer: string;
  /** Whether counters are in the same Redis; true when left out. */
  readonly isShared?: boolean;
  readonly claimAfterMs?: number;
}

/** What this reader remembers of a workspace's stream. */
interface Reading {
  /** Entries were handed over, or claimed, that are not acknowledged. */
  holds: boolean;
  /** Of `performance.now()`. */
  claimedAtMs: number;
}

export class RedisEventSource implements EventSource {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #consumer: string;
  readonly #claimAfterMs: number;
  readonly #readings = new Map<string, Reading>();
  readonly #budget: RedisEventBudget;
  /** Those whose streams had something since the room was last shared out. */
  #active = new Set<string>();

  /** The connection belongs to the caller, who also closes it. */
  constructor(client: RedisClient, options: RedisEventSourceOptions) {
    const { keys, consumer, isShared = true, claimAfterMs = CLAIM_AFTER_MS } = options;
    this.#client = client;
    this.#keys = keys;
    this.#consumer = consumer;
    this.#claimAfterMs = claimAfterMs;
    this.#budget = new RedisEventBudget(client, { keys, holder: consumer, isShared });
  }

  async look(workspaceIds: readonly string[]): Promise<StreamsSeen> {
    const size = isCluster(this.#client) ? 1 : LOOK_MAX;
    const groups: (readonly string[])[] = [];
    for (let at = 0; at < workspaceIds.length; at += size) groups.push(workspaceIds.slice(at, at + size));
    const looks = await Promise.all(groups.map((group) => this.#lookAt(group)));
    return {
      depths: looks.flatMap(({ depths }) => depths),
      setAside: looks.flatMap(({ setAside }) => setAside),
      failed: looks.flatMap(({ failed }) => failed),
    };
  }

  async take(workspaceId: string, handle: (events: TakenEvents) => Promise<void>): Promise<Portion> {
    const reading = this.#readingOf(workspaceId);
    const stream = this.#keys.events(workspaceId);
    await this.#claim(stream, reading);
    const taken = await this.#read(stream, reading);
    if (taken === undefined) return { entries: 0, unreadable: 0 };
    reading.holds = true;
    if (taken.events !== "") await handle(new EventLines(workspaceId, taken.events));
    const madeRoom = Math.ceil(taken.bytes * COST_PER_BYTE) + taken.entries * ENTRY_COST_BYTES;
    await this.#ask(FINISH, stream, [GROUP, taken.ids, madeRoom], [this.#keys.eventsRoom(workspaceId)]);
    return { entries: taken.entries, unreadable: taken.unreadable };
  }

  async keepWithin(workspaceIds: readonly string[], bytesMax: number): Promise<KeptBudget | undefined> {
    const active = this.#active;
    this.#active = new Set();
    return this.#budget.keep(workspaceIds, { wantedBytes: bytesMax, active });
  }

  /** Leaves every group that it has read in, and the budget. */
  async close(): Promise<void> {
    const streams = [...this.#readings.keys()].map((id) => this.#keys.events(id));
    const size = isCluster(this.#client) ? 1 : LOOK_MAX;
    const work: Promise<unknown>[] = [this.#budget.leave()];
    for (let at = 0; at < streams.length; at += size) {
      const group = streams.slice(at, at + size);
      const args = [...group, GROUP, this.#consumer, this.#claimAfterMs * GONE_AFTER_CLAIMS];
      work.push(runScript(this.#client, TIDY, group.length, args));
    }
    await Promise.all(work);
  }

  async #lookAt(workspaceIds: readonly string[]): Promise<StreamsSeen> {
    const depths: StreamDepth[] = [];
    const setAside: { workspaceId: string; type: string }[] = [];
    const failed: { workspaceId: string; error: Error }[] = [];
    const streams = workspaceIds.map((id) => this.#keys.events(id));
    const reply = await answered(runScript(this.#client, LOOK, streams.length, streams));
    const [nowMs, ...seen] = reply as [string, ...[place: number, entries: number, is: unknown, firstId: string][]];
    for (const [place, entries, is, firstId] of seen) {
      const workspaceId = workspaceIds[place - 1] ?? "";
      if (entries === -1) setAside.push({ workspaceId, type: String(is) });
      else if (entries === -2) failed.push({ workspaceId, error: new StreamRefused(String(is)) });
      else {
        const ageMs = Math.max(0, Number(nowMs) - Number(firstId.split("-")[0]));
        depths.push({ workspaceId, entries, bytes: Number(is), ageMs });
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

  /** First what this reader holds already, and only then what is new. undefined: there is neither now. */
  async #read(stream: string, reading: Reading): Promise<Taken | undefined> {
    if (reading.holds) {
      const held = await this.#readFrom(stream, "0");
      if (held !== undefined) return held;
      reading.holds = false;
    }
    return this.#readFrom(stream, ">");
  }

  async #readFrom(stream: string, from: "0" | ">"): Promise<Taken | undefined> {
    const args = [GROUP, this.#consumer, from, PORTION_BYTES, ENTRY_BYTES_MAX, ENTRIES_MAX];
    const reply = await this.#ask(TAKE, stream, args);
    if (reply === null) return undefined;
    const [entries, unreadable, ids, events, bytes] = reply as [number, number, string, string, number];
    return { entries, unreadable, ids, events, bytes };
  }

  /** Looks for what dead readers left, half as often as an entry has to lie before it counts as left. */
  async #claim(stream: string, reading: Reading): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - reading.claimedAtMs < this.#claimAfterMs / 2) return;
    const reply = await this.#ask(CLAIM, stream, [GROUP, this.#consumer, this.#claimAfterMs, ENTRIES_MAX]);
    if (reply === 0) reading.claimedAtMs = nowMs;
    else reading.holds = true;
    await this.#ask(TIDY, stream, [GROUP, "", this.#claimAfterMs * GONE_AFTER_CLAIMS]);
  }

  /** Where the store was emptied, or somebody destroyed the group, that is made and the script run again. */
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
      if (!(error instanceof StreamRefused) || !/\bNOGROUP\b/.test(error.message)) throw error;
    }
    try {
      await answered(this.#client.xgroup("CREATE", stream, GROUP, "0", "MKSTREAM"));
    } catch (error) {
      if (!(error instanceof StreamRefused) || !error.message.startsWith("BUSYGROUP")) throw error;
    }
    return run();
  }
}

/** The reply. Rejects with `StreamRefused` when the server answers that it will not, and else with `EventsUnavailable`. */
async function answered<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (cause) {
    if (cause instanceof Error && cause.name === "ReplyError") throw new StreamRefused(cause.message, { cause });
    throw new EventsUnavailable("reading events from Redis", { cause });
  }
}

interface Taken {
  readonly entries: number;
  readonly unreadable: number;
  /** With a space between. */
  readonly ids: string;
  /** With a line feed between. */
  readonly events: string;
  readonly bytes: number;
}
