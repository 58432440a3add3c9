import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript, within } from "../redis/script.ts";
import type { EventBatch } from "./buffer.ts";
import type { EventSource, UsageEvent } from "./contract.ts";
import { readEvent } from "./schema.ts";

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

type Entry = [id: string, fields: string[] | null];

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
  #skipped = 0;

  constructor(
    client: RedisClient,
    { keys, consumer, claimAfterMs = CLAIM_AFTER_MS }: { keys: RedisKeys; consumer: string; claimAfterMs?: number },
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#consumer = consumer;
    this.#claimAfterMs = claimAfterMs;
  }

  /** Entries that were no events of their workspace, and were removed unread. */
  skipped(): number {
    return this.#skipped;
  }

  async take(
    workspaceIds: readonly string[],
    max: number,
    handle: (events: readonly UsageEvent[]) => Promise<void>,
  ): Promise<number> {
    let taken = 0;
    for (const workspaceId of workspaceIds) {
      if (taken >= max) break;
      const entries = await this.#read(workspaceId, max - taken);
      if (entries.length === 0) continue;
      const events = entries.flatMap(([, fields]) => readEvent(fields?.[1] ?? "", workspaceId) ?? []);
      this.#skipped += entries.length - events.length;
      if (events.length > 0) await handle(events);
      await this.#acknowledge(
        workspaceId,
        entries.map(([id]) => id),
      );
      taken += events.length;
    }
    return taken;
  }

  async #read(workspaceId: string, max: number): Promise<Entry[]> {
    const stream = this.#keys.events(workspaceId);
    try {
      if (!this.#knownGroups.has(workspaceId)) await this.#makeGroup(workspaceId);
      const claimed = await this.#claim(workspaceId, max);
      if (claimed.length > 0) return claimed;
      const read = await this.#client.xreadgroup("GROUP", GROUP, this.#consumer, "COUNT", max, "STREAMS", stream, ">");
      return (read as [string, Entry[]][] | null)?.[0]?.[1] ?? [];
    } catch (error) {
      // The store was emptied: the group is made anew on the next call.
      if (!(error instanceof Error && error.message.startsWith("NOGROUP"))) throw error;
      this.#knownGroups.delete(workspaceId);
      return [];
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
  async #claim(workspaceId: string, max: number): Promise<Entry[]> {
    const nowMs = performance.now();
    const claimedAtMs = this.#claimedAtMs.get(workspaceId);
    if (claimedAtMs !== undefined && nowMs - claimedAtMs < this.#claimAfterMs / 2) return [];
    const stream = this.#keys.events(workspaceId);
    const idleMs = this.#claimAfterMs;
    const reply = await this.#client.xautoclaim(stream, GROUP, this.#consumer, idleMs, "0", "COUNT", max);
    const entries = (reply as [string, Entry[]])[1];
    // A full batch means that there may be more, so the next call looks again.
    if (entries.length < max) this.#claimedAtMs.set(workspaceId, nowMs);
    return entries;
  }

  async #acknowledge(workspaceId: string, ids: string[]): Promise<void> {
    const stream = this.#keys.events(workspaceId);
    await Promise.all([this.#client.xack(stream, GROUP, ...ids), this.#client.xdel(stream, ...ids)]);
  }
}
