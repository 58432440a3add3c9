import { performance } from "node:perf_hooks";
import type { Redis } from "ioredis";
import {
  connectForBlocking,
  type RedisAddress,
  type RedisClient,
  reconnectDelayMs,
  whenReady,
} from "../redis/connect.ts";
import { GLOBAL, type RedisKeys } from "../redis/keys.ts";
import { runReadingScript, within } from "../redis/script.ts";
import type { StoreClock } from "../redis/store-clock.ts";
import type { ChangeListener, StreamId, StreamPosition } from "./contract.ts";
import type { RollbackDetector } from "./rollback-detector.ts";
import { POSITION } from "./scripts.ts";
import { isProjectionId, readHistoryEntry, readInteger, readStreamEntry, type StreamEntry } from "./stream-entry.ts";

/*
 * Follows one change stream on a separate connection.
 *
 *   connecting ──► positioned ──► reading ──► (connection lost, or silent for too long) ──► connecting, after a pause
 *
 * The follower starts as soon as records can also be read, or after a delay even if they cannot. It reads the stream, which holds only the
 * newest entries, with a blocking command. If the first entry of a reply does not directly follow the position, the follower reads the
 * missing entries from the history.
 *
 * The position is (projection id, n, id of the last entry). It is read before anything else, and kept when the connection is lost, so that
 * missed entries are read from there. The listener is reset if that is impossible: another projection, a gap in the numbers (old entries
 * are removed), numbers that went back, an unreadable entry, or a start so late that callers have begun without the stream. A follower
 * continues from the position of an earlier process in the same way, with one exception: if the projection has changed, the listener always
 * drops its complete cache, because the process may have been stopped for longer than the period whose changes are announced again.
 *
 * A projection whose numbers went back counts as rolled back (rollback-detector.ts) until another one begins. Its changes are still
 * reported; its heartbeats are not, so that staleness grows.
 *
 * Invariants: no change is skipped without a reset; no heartbeat is reported while the projection counts as rolled back; no position
 * is taken from an unreadable reply.
 */

const BLOCK_MS = 2_000;
/** Maximum time without a reply, after which the connection counts as lost even without an error. A read blocks for 2 s. */
const RESPONSE_MS = 5_000;
/**
 * Delay of changes after a reconnect. A change makes readers drop cached records, which a process that is not fully connected yet could not
 * read again. It would then reject requests that it could have decided with the cached records. The delay is longer than a reconnect takes;
 * after it, changes are delivered in any case.
 */
const READER_WAIT_MS = 3_000;
const ENTRIES_PER_READ = 1_000;
/**
 * Maximum number of entries that are read from the beginning of a projection. If the projection has more entries, the listener is reset
 * instead.
 */
const ENTRIES_SINCE_BEGIN_MAX = 20_000;

type Entry = [id: string, fields: string[]];

export interface FollowerOptions {
  readonly client: RedisClient;
  readonly keys: RedisKeys;
  readonly address: RedisAddress;
  readonly clientName: string;
  readonly stream: StreamId;
  readonly listener: ChangeListener;
  readonly rollbacks: RollbackDetector;
  readonly clock: StoreClock;
  /** Position of an earlier process. */
  readonly from?: StreamPosition | undefined;
}

export class Follower {
  readonly #options: FollowerOptions;
  readonly #workspaceId: string | undefined;
  /** Name of this stream in the rollback detector. */
  readonly #name: string;
  readonly #stateKey: string;
  readonly #changesKey: string;
  readonly #historyKey: string;
  #position: StreamPosition | undefined;
  /** Whether the position comes from an earlier process and has not been compared with the store's projection yet. */
  #isRestored: boolean;
  #connection: Redis | undefined;
  /** Id of the rolled-back projection that was reported to the listener. */
  #reportedRollback: string | undefined;
  #isLate = false;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #wake: (() => void) | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    const { stream, keys } = options;
    this.#workspaceId = stream === "central" ? undefined : stream.workspaceId;
    this.#name = this.#workspaceId ?? GLOBAL;
    this.#stateKey = keys.projectionState(this.#name);
    this.#changesKey = keys.changes(this.#name);
    this.#historyKey = keys.history(this.#name);
    const { from, rollbacks } = options;
    this.#position = from;
    this.#isRestored = from !== undefined;
    if (from !== undefined) rollbacks.observe(this.#name, { projectionId: from.projectionId, head: from.n });
  }

  /** Position up to which all entries were delivered; `undefined` before the first read, and while the projection counts as rolled back. */
  get position(): StreamPosition | undefined {
    const position = this.#position;
    if (position === undefined || position.projectionId === "") return undefined;
    return this.#options.rollbacks.isRolledBack(this.#name, position.projectionId) ? undefined : position;
  }

  /**
   * Resolves when the position is known, or after `waitMs`. If the position is still unknown by then, the listener is reset as soon as the
   * position is known.
   */
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
        await within(RESPONSE_MS, connection.connect());
        await whenReady(client, AbortSignal.any([AbortSignal.timeout(READER_WAIT_MS), this.#stop.signal]));
        await this.#takePosition(connection);
        onPositioned();
        attempt = 0;
        while (!this.#stop.signal.aborted) await this.#read(connection);
      } catch (error) {
        // Connection errors need no report: no heartbeat arrives, so the staleness grows, and policies act on it. A projection state or
        // stream of the wrong type, however, does not recover by itself, so it is reported.
        const problem = error instanceof Error ? error.message : String(error);
        if (problem.includes("WRONGTYPE")) this.#options.listener.onRefused?.("state", problem);
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

  /** Compares the position with the store's state. If they do not match, starts from scratch. */
  async #takePosition(connection: Redis): Promise<void> {
    const { listener, rollbacks } = this.#options;
    const before = rollbacks.known(this.#name);
    const sentMs = performance.now();
    const asked = runReadingScript(connection, POSITION, 2, [this.#stateKey, this.#changesKey]);
    const found = readPosition(await within(RESPONSE_MS, asked));
    if ("problem" in found) {
      listener.onRefused?.("state", found.problem);
      throw new Error(`the projection state cannot be read: ${found.problem}`);
    }
    this.#options.clock.take(sentMs, found.time);
    const { projectionId, n } = found;
    const known = this.#position;
    const isNone = projectionId === "";
    if (!isNone && !rollbacks.evaluate(this.#name, { projectionId, head: n }, before)) {
      if (known?.projectionId !== projectionId || n < known.n) this.#position = found;
      // Reports the rollback of a projection only once.
      if (this.#reportedRollback !== projectionId) listener.onReset(WENT_BACK);
      this.#reportedRollback = projectionId;
      return;
    }
    if (known === undefined) {
      this.#position = found;
      if (this.#isLate) listener.onReset("following the changes begins only now", { forget: true });
    } else if (known.projectionId !== projectionId) {
      // Starts to read at the beginning of this projection, where changes that were missed in the previous one are announced again.
      const begin = isNone ? { position: found, forget: false } : await this.#findBegin(connection, found);
      this.#position = begin?.position ?? found;
      const forget = isNone ? false : this.#forgetsRestored(begin?.forget ?? true);
      listener.onReset(isNone ? "the projection is gone" : "another projection", { forget });
      if (begin !== undefined) return;
    } else {
      this.#isRestored = false;
      return;
    }
    // The cache has no data that is older than this position, so all earlier entries count as delivered.
    if (found.asOfMs !== undefined) listener.onHeartbeat(found.asOfMs);
  }

  /**
   * Returns the position at which the projection began, and whether missed changes are not announced again. Returns `undefined` if that
   * position is too far back or its entry was removed.
   */
  async #findBegin(
    connection: Redis,
    { projectionId, n }: StreamPosition,
  ): Promise<{ position: StreamPosition; forget: boolean } | undefined> {
    if (n > ENTRIES_SINCE_BEGIN_MAX) return undefined;
    const [begin] = await this.#readHistory(connection, projectionId, 0, 1);
    if (begin === undefined) return undefined;
    const entry = this.#readEntry(begin);
    return entry.kind === "begin"
      ? { position: { projectionId, n: 0, entryId: begin[0] }, forget: entry.forget }
      : undefined;
  }

  async #read(connection: Redis): Promise<void> {
    const from = this.#position?.entryId ?? "0-0";
    const asked = connection.xread("COUNT", ENTRIES_PER_READ, "BLOCK", BLOCK_MS, "STREAMS", this.#changesKey, from);
    const reply = (await within(RESPONSE_MS, asked)) as [string, Entry[]][] | null;
    const entries = reply?.[0]?.[1];
    const first = entries?.[0];
    // The relay writes every second. If nothing arrives, the store may have been emptied, which would cause no error.
    if (entries === undefined || first === undefined) return this.#takePosition(connection);
    await this.#catchUp(connection, this.#readEntry(first));
    this.#tell(entries);
  }

  /** Reports the entries between the position and `next`, up to the first one that is missing from the history. */
  async #catchUp(connection: Redis, next: StreamEntry): Promise<void> {
    if (next.kind === "unreadable") return;
    const { projectionId, n } = next;
    const known = this.#position;
    const isSame = known?.projectionId === projectionId;
    if (!isSame && n > ENTRIES_SINCE_BEGIN_MAX) return;
    for (let from = isSame ? known.n + 1 : 0; from < n; from += ENTRIES_PER_READ) {
      const to = Math.min(n, from + ENTRIES_PER_READ);
      const entries = await this.#readHistory(connection, projectionId, from, to);
      this.#tell(entries);
      if (entries.length < to - from) return;
    }
  }

  /** Returns the entries from number `from` up to, but not including, `to`, or up to the first missing number. */
  async #readHistory(connection: Redis, projectionId: string, from: number, to: number): Promise<Entry[]> {
    const numbers = Array.from({ length: to - from }, (_, i) => String(from + i));
    // A Redis user with older rules may not read the history, so an error counts as an empty history.
    const asked = connection.hmget(this.#historyKey, "p", ...numbers).catch((error: Error) => {
      if (error.message.startsWith("NOPERM")) return [];
      throw error;
    });
    const [found, ...texts] = await within(RESPONSE_MS, asked);
    const entries: Entry[] = [];
    if (found !== projectionId) return entries;
    for (const [i, text] of texts.entries()) {
      const entry = readHistoryEntry(text);
      if (entry === undefined) break;
      const [id, ...fields] = entry;
      entries.push([id, [...fields, "p", projectionId, "n", String(from + i)]]);
    }
    return entries;
  }

  #readEntry([, fields]: Entry): StreamEntry {
    return readStreamEntry(fields, { isGlobal: this.#workspaceId === undefined });
  }

  #tell(entries: readonly Entry[]): void {
    try {
      this.#tellAll(entries);
    } catch (error) {
      // The listener threw and may have missed changes before the position, so the position is discarded.
      this.#position = undefined;
      this.#isLate = true;
      throw error;
    }
  }

  #tellAll(entries: readonly Entry[]): void {
    let [isReset, isForgotten] = [false, false];
    for (const each of entries) {
      const effects = this.#advance(each[0], this.#readEntry(each));
      // The listener reads no records between the entries of one reply. So of several resets, reporting the first one, and the first one
      // that sets `forget`, is enough.
      if (effects.reset !== undefined) {
        const { reason, forget } = effects.reset;
        if (!isReset || (forget && !isForgotten)) this.#options.listener.onReset(reason, { forget });
        isReset = true;
        isForgotten ||= forget;
      }
      this.#deliver(effects.entry);
    }
  }

  /** Moves the position past an entry. Returns the entry and, if the listener must be reset, the reason. */
  #advance(entryId: string, entry: StreamEntry): { entry: StreamEntry; reset?: Reset } {
    const { rollbacks } = this.#options;
    const known = this.#position;
    if (entry.kind === "unreadable") {
      // The unreadable entry may have been a change. The position keeps the number of the last readable entry, so the next entry reveals
      // the gap.
      this.#position = { projectionId: "", n: 0, ...known, entryId };
      return { entry, reset: { reason: `an entry cannot be read: ${entry.problem}`, forget: true } };
    }
    const { projectionId, n } = entry;
    this.#position = { projectionId, n, entryId };
    if (known?.projectionId === projectionId && n <= known.n) rollbacks.markRolledBack(this.#name, projectionId);
    else rollbacks.observe(this.#name, { projectionId, head: n });
    if (known?.projectionId !== projectionId) {
      const forget = this.#forgetsRestored(entry.kind !== "begin" || entry.forget);
      return { entry, reset: { reason: "another projection", forget } };
    }
    // Ignores heartbeats until a new projection begins, because they would make data from before the rollback look fresh.
    if (n <= known.n) return { entry, reset: { reason: WENT_BACK, forget: false } };
    const missed = `changes ${known.n + 1} to ${n - 1} were missed`;
    if (n !== known.n + 1) return { entry, reset: { reason: missed, forget: true } };
    return { entry };
  }

  /**
   * Returns whether to drop the complete cache. The cache of an earlier process is always dropped, even though the new projection announces
   * recent changes again.
   */
  #forgetsRestored(forget: boolean): boolean {
    const isRestored = this.#isRestored;
    this.#isRestored = false;
    return forget || isRestored;
  }

  #deliver(entry: StreamEntry): void {
    const { listener, rollbacks } = this.#options;
    if (entry.kind === "unreadable") listener.onRefused?.("entry", entry.problem);
    else if (entry.kind === "change") {
      const workspaceId = this.#workspaceId ?? entry.workspaceId;
      listener.onChange({ workspaceId, kind: entry.recordKind, id: entry.id });
    } else if (entry.kind === "heartbeat") {
      if (entry.said === undefined) listener.onRefused?.("heartbeat", "its times cannot be read");
      else if (rollbacks.isRolledBack(this.#name, entry.projectionId)) listener.onRefused?.("heartbeat", WENT_BACK);
      else listener.onHeartbeat(entry.said.asOfMs, entry.said.lagging);
    }
  }
}

const WENT_BACK = "the store has gone back in time";

interface Reset {
  readonly reason: string;
  /** Whether missed changes are not announced again. */
  readonly forget: boolean;
}

interface FoundPosition extends StreamPosition {
  /** Time of the last heartbeat; `undefined` before the first heartbeat. */
  readonly asOfMs: number | undefined;
  /** Redis time in seconds and microseconds. */
  readonly time: readonly string[];
}

/** Parses the reply of the script POSITION. An empty projection id means that no projection exists. */
function readPosition(reply: unknown): FoundPosition | { readonly problem: string } {
  if (!Array.isArray(reply) || reply.some((part) => typeof part !== "string"))
    return { problem: "it is no list of texts" };
  const [projectionId = "", head = "", asOf = "", entryId = "", ...time] = reply as string[];
  const n = projectionId === "" ? 0 : readInteger(head);
  if (projectionId !== "" && !isProjectionId(projectionId)) return { problem: "no projection id" };
  if (n === undefined) return { problem: "its head is no number" };
  // An unreadable time counts as a missing heartbeat; the next heartbeat replaces it.
  return { projectionId, n, entryId, asOfMs: readInteger(asOf), time };
}
