import { isCluster, type RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { SHARED_LUA } from "../redis/lua.ts";
import { defineScript, runScript } from "../redis/script.ts";
import { type StreamUse, shareQuota, trimOver } from "./budget.ts";
import type { KeptBudget } from "./contract.ts";
import { FIRST_ROOM_BYTES } from "./redis-sink.ts";

/*
 * Keeps the event streams of one Redis within their memory limit. One api-server at a time does this, under a lease in Redis. When the
 * lease expires, another api-server takes over. In the meantime, writers can use only their remaining quota, so no stream grows beyond its
 * quota even without a running api-server.
 */

const LEASE_MS = 5_000;
/** Interval at which empty streams are measured too, because the quota that readers and writers count drifts from the memory in use. */
const MEASURE_ALL_EVERY_MS = 10_000;
/** Streams per measuring script. Redis scans each stream node by node, 4 KiB at a time. */
const MEASURE_MAX = 100;
/** Fraction of a shared Redis that events may use. The rest is reserved for the counters. */
const PART_OF_SHARED = 1 / 4;
const PART_OF_OWN = 3 / 4;
/** Events may use this fraction of the memory that other keys leave free. */
const PART_OF_REST = 1 / 2;

/**
 * Acquires or extends the lease. KEYS: the lease. ARGV: the holder, the lease duration in ms. Reply: 1 newly acquired, 2 still held, 0 held
 * by another.
 */
export const LEASE = defineScript(
  { keys: 1, args: 2, argBytes: 512 },
  `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return holder and 2 or 1
`,
);

/** Releases the lease. KEYS: the lease. ARGV: the holder. */
export const LEAVE = defineScript(
  { keys: 1, args: 1, argBytes: 512 },
  `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`,
);

/**
 * Measures streams. KEYS: the stream and the quota of each workspace. ARGV: the default quota, which also replaces a quota that is not an
 * integer. Reply: for each workspace, the bytes that its stream uses and its quota.
 */
export const MEASURE = defineScript(
  { keys: 2 * MEASURE_MAX, args: 1 },
  `
local measured = {}
for k = 1, #KEYS, 2 do
  local bytes = redis.call('MEMORY', 'USAGE', KEYS[k], 'SAMPLES', '0') or 0
  local room = redis.pcall('GETRANGE', KEYS[k + 1], '0', '16')
  if type(room) ~= 'string' or not string.match(room, '^%-?%d+$') or #room > 16 then
    redis.call('SET', KEYS[k + 1], ARGV[1])
    room = ARGV[1]
  end
  measured[#measured + 1] = {bytes, room}
end
return measured
`,
);

/**
 * Removes the oldest entries. A key that is not a stream is removed immediately, because the next poll may be half a minute later. KEYS: a
 * stream. ARGV: the fraction of its entries to keep. Reply: the number of removed entries.
 */
export const TRIM = defineScript(
  { keys: 1, args: 1 },
  `${SHARED_LUA}
local length = redis.pcall('XLEN', KEYS[1])
if is_wrong_type(length) then return redis.call('UNLINK', KEYS[1]) end
local kept = math.floor(length * tonumber(ARGV[1]))
return redis.call('XTRIM', KEYS[1], 'MAXLEN', string.format('%.0f', kept))
`,
);

/** Returns how many bytes of a server's memory events may use. `maxBytes` is 0 if the server has no memory limit. */
export function bytesForEvents(given: {
  readonly requestedBytes: number;
  readonly maxBytes: number;
  readonly usedByOthersBytes: number;
  readonly isShared: boolean;
}): number {
  const { requestedBytes: wantedBytes, maxBytes, usedByOthersBytes, isShared } = given;
  if (maxBytes === 0) return wantedBytes;
  const part = maxBytes * (isShared ? PART_OF_SHARED : PART_OF_OWN);
  const rest = isShared ? Math.max(0, maxBytes - usedByOthersBytes) * PART_OF_REST : part;
  return Math.floor(Math.min(wantedBytes, part, rest));
}

export interface BudgetOptions {
  readonly keys: RedisKeys;
  /** Name of the lease holder, unique to this process. */
  readonly holder: string;
  /** Whether this Redis also contains the counters. */
  readonly isShared: boolean;
}

export class RedisEventBudget {
  readonly #client: RedisClient;
  readonly #options: BudgetOptions;
  #uses = new Map<string, StreamUse>();
  #measuredAllAtMs = Number.NEGATIVE_INFINITY;

  /** The caller owns the connection and closes it. */
  constructor(client: RedisClient, options: BudgetOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** `active` are the workspaces with recent entries in their streams. Returns `undefined` if another process has the lease. */
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
    for (const { workspaceId, keptShare } of trimOver(totalBytes, [...uses.values()])) {
      trimmed += Number(await runScript(this.#client, TRIM, 1, [keys.events(workspaceId), keptShare]));
    }
    await this.#change(shareQuota(totalBytes, [...uses.values()]), uses);
    this.#uses = uses;
    return { totalBytes, trimmed };
  }

  /** Releases the lease, so that another process can take over immediately. */
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
      const named = group.flatMap((id) => [keys.events(id), keys.eventsQuota(id)]);
      const reply = await runScript(this.#client, MEASURE, named.length, [...named, FIRST_ROOM_BYTES]);
      for (const [i, [bytes, room]] of (reply as [number, string][]).entries()) {
        const workspaceId = group[i] ?? "";
        uses.set(workspaceId, { workspaceId, bytes, capacityBytes: Number(room) });
      }
    }
    return uses;
  }

  /** Adds the difference instead of setting the quota. Bytes that writers use in the meantime thus stay subtracted. */
  async #change(changes: ReadonlyMap<string, number>, uses: Map<string, StreamUse>): Promise<void> {
    const { keys } = this.#options;
    const pipeline = this.#client.pipeline();
    for (const [workspaceId, change] of changes) {
      pipeline.incrby(keys.eventsQuota(workspaceId), change);
      const use = uses.get(workspaceId);
      if (use !== undefined) uses.set(workspaceId, { ...use, capacityBytes: use.capacityBytes + change });
    }
    if (changes.size === 0) return;
    const replies = (await pipeline.exec()) ?? [];
    // A change fails if another process has overwritten the quota. The quotas are then measured again soon; all other changes were made.
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
    return bytesForEvents({ requestedBytes: wantedBytes, maxBytes: read("maxmemory"), usedByOthersBytes, isShared });
  }
}
