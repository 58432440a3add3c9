import type { Redis } from "ioredis";
import { connectForBlocking, type RedisClient, reconnectDelayMs } from "../redis/connect.ts";
import { CENTRAL, type RedisKeys } from "../redis/keys.ts";
import { runScript, within } from "../redis/script.ts";
import type { FeedId, FeedListener } from "./contract.ts";
import { readFeedEntry } from "./feed-entry.ts";
import { POSITION } from "./scripts.ts";

/*
 * Follows one stream of changes on a connection of its own.
 *
 *   connecting ──► positioned ──► reading ──► (connection lost, or silent for too long) ──► connecting, after a pause
 *
 * Position is (projection id, n, id of the last entry). It is taken before anything else is read, and kept over a lost
 * connection: what was missed meanwhile is read from there. The listener is told to forget everything when that cannot be:
 * another projection, a hole in the numbers, numbers that went back, or a start so late that it had begun without us.
 * Never: a change that the listener is not told of, without a reset.
 */

const BLOCK_MS = 2_000;
/** A read that blocks for 2 s and is not answered in 5 s has lost its connection, whether or not anybody said so. */
const ANSWER_MS = 5_000;
const ENTRIES_PER_READ = 1_000;

interface Position {
  readonly projectionId: string;
  readonly n: number;
  readonly entryId: string;
}

type Entry = [id: string, fields: string[]];

export interface FollowerOptions {
  readonly client: RedisClient;
  readonly keys: RedisKeys;
  readonly url: string;
  readonly clientName: string;
  readonly feed: FeedId;
  readonly listener: FeedListener;
}

export class Follower {
  readonly #options: FollowerOptions;
  readonly #workspaceId: string | undefined;
  readonly #markKey: string;
  readonly #changesKey: string;
  #position: Position | undefined;
  #connection: Redis | undefined;
  #isLate = false;
  #isClosed = false;
  #running: Promise<void> = Promise.resolve();
  #wake: (() => void) | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    const { feed, keys } = options;
    this.#workspaceId = feed === "central" ? undefined : feed.workspaceId;
    const name = this.#workspaceId ?? CENTRAL;
    this.#markKey = keys.mark(name);
    this.#changesKey = keys.changes(name);
  }

  /** Resolves when the position is known, or after `waitMs`; then the listener is reset when it is known at last. */
  async start(waitMs: number): Promise<void> {
    const positioned = Promise.withResolvers<void>();
    this.#running = this.#run(positioned.resolve);
    await within(waitMs, positioned.promise).catch(() => {
      this.#isLate = this.#position === undefined;
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#connection?.disconnect();
    this.#wake?.();
    await this.#running;
  }

  async #run(onPositioned: () => void): Promise<void> {
    for (let attempt = 0; !this.#isClosed; attempt++) {
      try {
        const { url, clientName, client } = this.#options;
        const connection = connectForBlocking({ url, clientName: `${clientName}-feed`, key: this.#changesKey }, client);
        this.#connection = connection;
        await within(ANSWER_MS, connection.connect());
        await this.#takePosition(connection);
        onPositioned();
        attempt = 0;
        while (!this.#isClosed) await this.#read(connection);
      } catch {
        // Reported by what it leads to: no heartbeat arrives, and the staleness that policies act on grows.
      } finally {
        this.#connection?.disconnect();
      }
      if (!this.#isClosed) await this.#pause(reconnectDelayMs(attempt));
    }
  }

  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }

  /** Compares where we are with what the store says, and begins anew where the two do not fit. */
  async #takePosition(connection: Redis): Promise<void> {
    const asked = runScript(connection, POSITION, 2, [this.#markKey, this.#changesKey]);
    const [projectionId = "", head, asOfMs, entryId = "0-0"] = (await within(ANSWER_MS, asked)) as string[];
    const found = { projectionId, n: Number(head || 0), entryId };
    const known = this.#position;
    if (known === undefined) {
      this.#position = found;
      if (this.#isLate) this.#options.listener.onReset("following the changes begins only now");
    } else if (known.projectionId !== projectionId) {
      this.#position = found;
      this.#options.listener.onReset(projectionId === "" ? "the projection is gone" : "another projection");
    } else if (found.n < known.n) {
      this.#position = found;
      this.#options.listener.onReset("the store has gone back in time", projectionId);
      return;
    } else return;
    // Nothing is cached of before this position, so all that was projected until then counts as delivered.
    if (asOfMs) this.#options.listener.onHeartbeat(Number(asOfMs));
  }

  async #read(connection: Redis): Promise<void> {
    const from = this.#position?.entryId ?? "0-0";
    const asked = connection.xread("COUNT", ENTRIES_PER_READ, "BLOCK", BLOCK_MS, "STREAMS", this.#changesKey, from);
    const reply = (await within(ANSWER_MS, asked)) as [string, Entry[]][] | null;
    const entries = reply?.[0]?.[1];
    // The relay writes each second. Silence may mean that the store was emptied, which says nothing by itself.
    if (entries === undefined) await this.#takePosition(connection);
    else for (const entry of entries) this.#deliver(entry);
  }

  #deliver([entryId, fields]: Entry): void {
    const { listener } = this.#options;
    const entry = readFeedEntry(fields);
    const known = this.#position;
    if (entry.kind === "unreadable") {
      // It may have been a change. The numbers go on from the last one that could be read, so that a hole is still seen.
      if (known !== undefined) this.#position = { ...known, entryId };
      listener.onReset(`an entry cannot be read: ${entry.problem}`);
      listener.onRefused?.("entry", entry.problem);
      return;
    }
    const { projectionId, n } = entry;
    this.#position = { projectionId, n, entryId };
    if (known === undefined || known.projectionId !== projectionId) listener.onReset("another projection");
    else if (n <= known.n) listener.onReset("the store has gone back in time", known.projectionId);
    else if (n !== known.n + 1) listener.onReset(`changes ${known.n + 1} to ${n - 1} were missed`);
    if (entry.kind === "change") {
      const workspaceId = this.#workspaceId ?? entry.workspaceId ?? "";
      listener.onChange({ workspaceId, kind: entry.recordKind, id: entry.id });
    } else if (entry.kind === "heartbeat") {
      if (entry.said === undefined) listener.onRefused?.("heartbeat", "its times cannot be read");
      else listener.onHeartbeat(entry.said.asOfMs, entry.said.lagging);
    }
  }
}
