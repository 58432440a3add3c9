import { isCluster, type RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { SHARED_LUA } from "../redis/lua.ts";
import { defineScript, runScript } from "../redis/script.ts";
import { type StreamUse, shareRoom, trimOver } from "./budget.ts";
import type { KeptBudget } from "./contract.ts";
import { FIRST_ROOM_BYTES } from "./redis-sink.ts";

/*
 * Keeps the event streams of one Redis within their memory. One api-server at a time does so, by a lease in Redis; another
 * takes over when that runs out. In between, writers go on with the room that they have, so that a centre that is away, or
 * does not read, lets no stream grow past what it was given.
 */

const LEASE_MS = 5_000;
/** After this time streams that looked empty are measured too: others read them, and what is counted drifts. */
const MEASURE_ALL_EVERY_MS = 10_000;
/** Streams that one script measures: each is gone through, a node of 4 KiB at a time. */
const MEASURE_MAX = 100;
/** Events may have this part of a Redis that they share with counters, and this one of a Redis of their own. */
const PART_OF_SHARED = 1 / 4;
const PART_OF_OWN = 3 / 4;
/** And this part of what others in it leave. */
const PART_OF_REST = 1 / 2;

/** KEYS: the lease. ARGV: who asks, for how many ms. Reply: 1 anew, 2 still, 0 another has it. */
const LEASE = defineScript(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return holder and 2 or 1
`);

/** KEYS: the lease. ARGV: who leaves it. */
const LEAVE = defineScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`);

/**
 * KEYS: stream and room of each workspace. ARGV: the room of those who have none yet. Reply: for each how many bytes the stream
 * takes, and how many there is room for. A room that is no whole number is made anew.
 */
const MEASURE = defineScript(`
local measured = {}
for k = 1, #KEYS, 2 do
  local bytes = redis.call('MEMORY', 'USAGE', KEYS[k], 'SAMPLES', '0') or 0
  local room = redis.pcall('GET', KEYS[k + 1])
  if type(room) ~= 'string' or not string.match(room, '^%-?%d+$') or #room > 16 then
    redis.call('SET', KEYS[k + 1], ARGV[1])
    room = ARGV[1]
  end
  measured[#measured + 1] = {bytes, room}
end
return measured
`);

/**
 * KEYS: a stream. ARGV: the part of its entries that stays. Reply: how many went. The oldest go. What is no stream goes whole: the
 * next look at it may be half a minute away.
 */
const TRIM = defineScript(`${SHARED_LUA}
local length = redis.pcall('XLEN', KEYS[1])
if is_wrong_type(length) then return redis.call('UNLINK', KEYS[1]) end
local kept = math.floor(length * tonumber(ARGV[1]))
return redis.call('XTRIM', KEYS[1], 'MAXLEN', string.format('%.0f', kept))
`);

/** The part of a server's memory that is for events. `maxBytes` 0: the server has no bound of its own. */
export function bytesForEvents(given: {
  readonly wantedBytes: number;
  readonly maxBytes: number;
  readonly usedByOthersBytes: number;
  readonly isShared: boolean;
}): number {
  const { wantedBytes, maxBytes, usedByOthersBytes, isShared } = given;
  if (maxBytes === 0) return wantedBytes;
  const part = maxBytes * (isShared ? PART_OF_SHARED : PART_OF_OWN);
  const rest = isShared ? Math.max(0, maxBytes - usedByOthersBytes) * PART_OF_REST : part;
  return Math.floor(Math.min(wantedBytes, part, rest));
}

export interface BudgetOptions {
  readonly keys: RedisKeys;
  /** Of this process alone. */
  readonly holder: string;
  /** Whether counters are in the same Redis. */
  readonly isShared: boolean;
}

export class RedisEventBudget {
  readonly #client: RedisClient;
  readonly #options: BudgetOptions;
  #uses = new Map<string, StreamUse>();
  #measuredAllAtMs = Number.NEGATIVE_INFINITY;

  /** The connection belongs to the caller, who also closes it. */
  constructor(client: RedisClient, options: BudgetOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** `active`: those whose streams had something lately. undefined: another process keeps the budget. */
  async keep(
    workspaceIds: readonly string[],
    { wantedBytes, active }: { wantedBytes: number; active: ReadonlySet<string> },
  ): Promise<KeptBudget | undefined> {
    const { keys, holder } = this.#options;
    const lease = await runScript(this.#client, LEASE, 1, [keys.eventsKeeper(), holder, LEASE_MS]);
    if (lease === 0) return undefined;
    if (lease === 1) this.#measuredAllAtMs = Number.NEGATIVE_INFINITY;
    const measuresAll = performance.now() - this.#measuredAllAtMs >= MEASURE_ALL_EVERY_MS;
    if (measuresAll) this.#measuredAllAtMs = performance.now();
    const measured = workspaceIds.filter((id) => measuresAll || active.has(id) || !this.#uses.has(id));
    const measurements = await this.#measure(measured);
    const uses = new Map<string, StreamUse>();
    for (const id of workspaceIds) {
      const use = measurements.get(id) ?? this.#uses.get(id);
      if (use !== undefined) uses.set(id, use);
    }
    const totalBytes = await this.#total(wantedBytes, [...uses.values()]);
    let trimmed = 0;
    for (const { workspaceId, keptPart } of trimOver(totalBytes, [...uses.values()])) {
      trimmed += Number(await runScript(this.#client, TRIM, 1, [keys.events(workspaceId), keptPart]));
    }
    await this.#change(shareRoom(totalBytes, [...uses.values()]), uses);
    this.#uses = uses;
    return { totalBytes, trimmed };
  }

  /** Lets another process take over at once. */
  async leave(): Promise<void> {
    const { keys, holder } = this.#options;
    await runScript(this.#client, LEAVE, 1, [keys.eventsKeeper(), holder]);
  }

  async #measure(workspaceIds: readonly string[]): Promise<Map<string, StreamUse>> {
    const { keys } = this.#options;
    const size = isCluster(this.#client) ? 1 : MEASURE_MAX;
    const uses = new Map<string, StreamUse>();
    for (let at = 0; at < workspaceIds.length; at += size) {
      const group = workspaceIds.slice(at, at + size);
      const named = group.flatMap((id) => [keys.events(id), keys.eventsRoom(id)]);
      const reply = await runScript(this.#client, MEASURE, named.length, [...named, FIRST_ROOM_BYTES]);
      for (const [i, [bytes, room]] of (reply as [number, string][]).entries()) {
        const workspaceId = group[i] ?? "";
        uses.set(workspaceId, { workspaceId, bytes, roomBytes: Number(room) });
      }
    }
    return uses;
  }

  /** As a change, not as a number: what writers take meanwhile stays taken. */
  async #change(changes: ReadonlyMap<string, number>, uses: Map<string, StreamUse>): Promise<void> {
    const { keys } = this.#options;
    const pipeline = this.#client.pipeline();
    for (const [workspaceId, change] of changes) {
      pipeline.incrby(keys.eventsRoom(workspaceId), change);
      const use = uses.get(workspaceId);
      if (use !== undefined) uses.set(workspaceId, { ...use, roomBytes: use.roomBytes + change });
    }
    if (changes.size === 0) return;
    const replies = (await pipeline.exec()) ?? [];
    // One whose room cannot be changed (it was overwritten since) is measured anew; the others have theirs.
    const failed = replies.some(([error]) => error !== null);
    if (failed) this.#measuredAllAtMs = Number.NEGATIVE_INFINITY;
  }

  async #total(wantedBytes: number, uses: readonly StreamUse[]): Promise<number> {
    const nodes = isCluster(this.#client) ? this.#client.nodes("master") : [this.#client];
    const infos = await Promise.all(nodes.map((node) => node.info("memory")));
    const read = (field: string) =>
      infos.reduce((total, info) => total + Number(new RegExp(`^${field}:(\\d+)`, "m").exec(info)?.[1] ?? 0), 0);
    const usedByOthersBytes = read("used_memory") - uses.reduce((total, { bytes }) => total + bytes, 0);
    const { isShared } = this.#options;
    return bytesForEvents({ wantedBytes, maxBytes: read("maxmemory"), usedByOthersBytes, isShared });
  }
}
