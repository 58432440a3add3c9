import { performance } from "node:perf_hooks";
import type { Redis } from "ioredis";
import {
  connectForBlocking,
  type RedisAddress,
  type RedisClient,
  reconnectDelayMs,
  whenReady,
} from "../redis/connect.ts";
import { CENTRAL, type RedisKeys } from "../redis/keys.ts";
import { runReadingScript, within } from "../redis/script.ts";
import type { StoreClock } from "../redis/store-clock.ts";
import type { FeedId, FeedListener, FeedPosition } from "./contract.ts";
import { type FeedEntry, isProjectionId, readFeedEntry, readWhole } from "./feed-entry.ts";
import type { KnownHeads } from "./known-heads.ts";
import { POSITION } from "./scripts.ts";

/*
 * Follows one change stream on a connection of its own.
 *
 *   connecting ──► positioned ──► reading ──► (connection lost, or silent for too long) ──► connecting, after a pause
 *
 * It goes on only when records can be read too, or after a while without.
 *
 * The position is (projection id, n, id of the last entry). It is taken before anything else is read, and kept when the
 * connection is lost, so that missed entries are read from there. The listener is reset when that is impossible: another
 * projection, a gap in the numbers (old entries are trimmed), numbers that went back, an entry that cannot be read, or a start so
 * late that callers have begun without the feed. A position of an earlier process is gone on from in the same way; only another
 * projection than its own makes the listener forget everything, because it may have been away for longer than what is announced again.
 *
 * A projection whose numbers went back is distrusted (known-heads.ts) until another one begins. Its changes are still reported;
 * its heartbeats are not, so that staleness grows.
 *
 * Invariants: no change is skipped without a reset; no heartbeat is reported while the data is distrusted; no position is taken from
 * something that could not be read.
 */

const BLOCK_MS = 2_000;
/** A read that blocks for 2 s and gets no reply in 5 s has lost its connection, even if no error was reported. */
const ANSWER_MS = 5_000;
/**
 * A change makes readers give up what they have. As long as they cannot read it again, because their own connection is not back yet,
 * they would refuse what they could have decided. Longer than a connection takes to come back, so changes wait no longer.
 */
const READER_WAIT_MS = 3_000;
const ENTRIES_PER_READ = 1_000;
/** A projection with more entries is not read from its beginning; everything is forgotten instead. */
const ENTRIES_SINCE_BEGIN_MAX = 20_000;

type Entry = [id: string, fields: string[]];

export interface FollowerOptions {
  readonly client: RedisClient;
  readonly keys: RedisKeys;
  readonly address: RedisAddress;
  readonly clientName: string;
  readonly feed: FeedId;
  readonly listener: FeedListener;
  readonly heads: KnownHeads;
  readonly clock: StoreClock;
  /** Where an earlier process stood. */
  readonly from?: FeedPosition | undefined;
}

export class Follower {
  readonly #options: FollowerOptions;
  readonly #workspaceId: string | undefined;
  /** The name under which the heads of this feed are known. */
  readonly #name: string;
  readonly #markKey: string;
  readonly #changesKey: string;
  #position: FeedPosition | undefined;
  /** Its position is that of an earlier process, and the store was not seen to be in the same projection yet. */
  #isRestored: boolean;
  #connection: Redis | undefined;
  /** The projection for which the listener has been told that it went back. */
  #toldDistrusted: string | undefined;
  #isLate = false;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #wake: (() => void) | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    const { feed, keys } = options;
    this.#workspaceId = feed === "central" ? undefined : feed.workspaceId;
    this.#name = this.#workspaceId ?? CENTRAL;
    this.#markKey = keys.mark(this.#name);
    this.#changesKey = keys.changes(this.#name);
    const { from, heads } = options;
    this.#position = from;
    this.#isRestored = from !== undefined;
    if (from !== undefined) heads.hear(this.#name, { projectionId: from.projectionId, head: from.n });
  }

  /** Everything up to it was delivered. undefined before the store was read, and while its projection is distrusted. */
  get position(): FeedPosition | undefined {
    const position = this.#position;
    if (position === undefined || position.projectionId === "") return undefined;
    return this.#options.heads.isDistrusted(this.#name, position.projectionId) ? undefined : position;
  }

  /** Resolves when the position is known, or after `waitMs`; in the second case the listener is reset once the position is known. */
  async start(waitMs: number): Promise<void> {
    const positioned = Promise.withResolvers<void>();
    this.#running = this.#run(positioned.resolve);
    await within(waitMs, positioned.promise).catch(() => {
      this.#isLate = this.#position === undefined;
    });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#connection?.disconnect();
    this.#wake?.();
    await this.#running;
  }

  async #run(onPositioned: () => void): Promise<void> {
    for (let attempt = 0; !this.#stop.signal.aborted; attempt++) {
      try {
        const { address, clientName, client } = this.#options;
        const connection = connectForBlocking(
          { ...address, clientName: `${clientName}-feed`, key: this.#changesKey },
          client,
        );
        this.#connection = connection;
        await within(ANSWER_MS, connection.connect());
        await whenReady(client, AbortSignal.any([AbortSignal.timeout(READER_WAIT_MS), this.#stop.signal]));
        await this.#takePosition(connection);
        onPositioned();
        attempt = 0;
        while (!this.#stop.signal.aborted) await this.#read(connection);
      } catch (error) {
        // The effect is visible: no heartbeat arrives, and the staleness that policies act on grows. A wrong type of the mark or the
        // stream does not go away by itself, so it is reported.
        const problem = error instanceof Error ? error.message : String(error);
        if (problem.includes("WRONGTYPE")) this.#options.listener.onRefused?.("mark", problem);
      } finally {
        this.#connection?.disconnect();
      }
      if (!this.#stop.signal.aborted) await this.#pause(reconnectDelayMs(attempt));
    }
  }

  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }

  /** Compares our position with the store's state, and starts again where they do not match. */
  async #takePosition(connection: Redis): Promise<void> {
    const { listener, heads } = this.#options;
    const before = heads.known(this.#name);
    const sentMs = performance.now();
    const asked = runReadingScript(connection, POSITION, 2, [this.#markKey, this.#changesKey]);
    const found = readPosition(await within(ANSWER_MS, asked));
    if ("problem" in found) {
      listener.onRefused?.("mark", found.problem);
      throw new Error(`the mark cannot be read: ${found.problem}`);
    }
    this.#options.clock.take(sentMs, found.time);
    const { projectionId, n } = found;
    const known = this.#position;
    const isNone = projectionId === "";
    if (!isNone && !heads.judge(this.#name, { projectionId, head: n }, before)) {
      if (known?.projectionId !== projectionId || n < known.n) this.#position = found;
      // The projection is still distrusted, which was reported before.
      if (this.#toldDistrusted !== projectionId) listener.onReset(WENT_BACK);
      this.#toldDistrusted = projectionId;
      return;
    }
    if (known === undefined) {
      this.#position = found;
      if (this.#isLate) listener.onReset("following the changes begins only now", { forget: true });
    } else if (known.projectionId !== projectionId) {
      // What was missed in the previous projection is announced again at the beginning of this one, so reading starts there.
      const begin = isNone ? { position: found, forget: false } : await this.#findBegin(connection, found);
      this.#position = begin?.position ?? found;
      const forget = isNone ? false : this.#forgetsRestored(begin?.forget ?? true);
      listener.onReset(isNone ? "the projection is gone" : "another projection", { forget });
      if (begin !== undefined) return;
    } else {
      this.#isRestored = false;
      return;
    }
    // Nothing from before this position is cached, so everything that was projected until then counts as delivered.
    if (found.asOfMs !== undefined) listener.onHeartbeat(found.asOfMs);
  }

  /**
   * Returns where the projection of this position began, and whether missed changes are lost; undefined when the beginning is too far
   * back or was trimmed.
   */
  async #findBegin(
    connection: Redis,
    { projectionId, n, entryId }: FeedPosition,
  ): Promise<{ position: FeedPosition; forget: boolean } | undefined> {
    if (n > ENTRIES_SINCE_BEGIN_MAX) return undefined;
    const asked = connection.xrevrange(this.#changesKey, entryId, "-", "COUNT", n + 1);
    const oldest = (await within(ANSWER_MS, asked)).at(-1);
    if (oldest === undefined) return undefined;
    const entry = readFeedEntry(oldest[1], { isCentral: this.#workspaceId === undefined });
    if (entry.kind !== "begin" || entry.projectionId !== projectionId) return undefined;
    return { position: { projectionId, n: 0, entryId: oldest[0] }, forget: entry.forget };
  }

  async #read(connection: Redis): Promise<void> {
    const from = this.#position?.entryId ?? "0-0";
    const asked = connection.xread("COUNT", ENTRIES_PER_READ, "BLOCK", BLOCK_MS, "STREAMS", this.#changesKey, from);
    const reply = (await within(ANSWER_MS, asked)) as [string, Entry[]][] | null;
    const entries = reply?.[0]?.[1];
    // The relay writes each second. Silence may mean that the store was emptied, which causes no error.
    if (entries === undefined) return this.#takePosition(connection);
    try {
      this.#tell(entries);
    } catch (error) {
      // The listener failed, and may not know everything that the position has passed.
      this.#position = undefined;
      this.#isLate = true;
      throw error;
    }
  }

  #tell(entries: readonly Entry[]): void {
    let [isReset, isForgotten] = [false, false];
    for (const [entryId, fields] of entries) {
      const told = this.#advance(entryId, readFeedEntry(fields, { isCentral: this.#workspaceId === undefined }));
      // Nothing is read between two entries of one reply, so one reset is enough for all, plus the first one that forgets.
      if (told.reset !== undefined) {
        const { reason, forget } = told.reset;
        if (!isReset || (forget && !isForgotten)) this.#options.listener.onReset(reason, { forget });
        isReset = true;
        isForgotten ||= forget;
      }
      this.#deliver(told.entry);
    }
  }

  /** Moves the position past an entry. Returns the entry, and the reason for a reset of the listener if one is needed. */
  #advance(entryId: string, entry: FeedEntry): { entry: FeedEntry; reset?: Reset } {
    const { heads } = this.#options;
    const known = this.#position;
    if (entry.kind === "unreadable") {
      // It may have been a change. The numbering continues from the last readable entry, so that a gap is still found.
      this.#position = { projectionId: "", n: 0, ...known, entryId };
      return { entry, reset: { reason: `an entry cannot be read: ${entry.problem}`, forget: true } };
    }
    const { projectionId, n } = entry;
    this.#position = { projectionId, n, entryId };
    if (known?.projectionId === projectionId && n <= known.n) heads.distrust(this.#name, projectionId);
    else heads.hear(this.#name, { projectionId, head: n });
    if (known?.projectionId !== projectionId) {
      const forget = this.#forgetsRestored(entry.kind !== "begin" || entry.forget);
      return { entry, reset: { reason: "another projection", forget } };
    }
    // Until another projection begins no heartbeat counts, so that nothing which is used meanwhile looks fresh.
    if (n <= known.n) return { entry, reset: { reason: WENT_BACK, forget: false } };
    const missed = `changes ${known.n + 1} to ${n - 1} were missed`;
    if (n !== known.n + 1) return { entry, reset: { reason: missed, forget: true } };
    return { entry };
  }

  /** At the first projection other than that of an earlier process everything is forgotten, whatever it announces again. */
  #forgetsRestored(forget: boolean): boolean {
    const isRestored = this.#isRestored;
    this.#isRestored = false;
    return forget || isRestored;
  }

  #deliver(entry: FeedEntry): void {
    const { listener, heads } = this.#options;
    if (entry.kind === "unreadable") listener.onRefused?.("entry", entry.problem);
    else if (entry.kind === "change") {
      const workspaceId = this.#workspaceId ?? entry.workspaceId;
      listener.onChange({ workspaceId, kind: entry.recordKind, id: entry.id });
    } else if (entry.kind === "heartbeat") {
      if (entry.said === undefined) listener.onRefused?.("heartbeat", "its times cannot be read");
      else if (heads.isDistrusted(this.#name, entry.projectionId)) listener.onRefused?.("heartbeat", WENT_BACK);
      else listener.onHeartbeat(entry.said.asOfMs, entry.said.lagging);
    }
  }
}

const WENT_BACK = "the store has gone back in time";

interface Reset {
  readonly reason: string;
  /** Changes were missed that are not announced again. */
  readonly forget: boolean;
}

interface FoundPosition extends FeedPosition {
  /** undefined before the first heartbeat. */
  readonly asOfMs: number | undefined;
  /** Seconds and microseconds. */
  readonly time: readonly string[];
}

/** Reads the reply of the script POSITION. A projection id of "" means that there is no projection. */
function readPosition(reply: unknown): FoundPosition | { readonly problem: string } {
  if (!Array.isArray(reply) || reply.some((part) => typeof part !== "string"))
    return { problem: "it is no list of texts" };
  const [projectionId = "", head = "", asOf = "", entryId = "", ...time] = reply as string[];
  const n = projectionId === "" ? 0 : readWhole(head);
  if (projectionId !== "" && !isProjectionId(projectionId)) return { problem: "no projection id" };
  if (n === undefined) return { problem: "its head is no number" };
  // An unreadable time counts as no heartbeat yet; the next heartbeat replaces it.
  return { projectionId, n, entryId, asOfMs: readWhole(asOf), time };
}
