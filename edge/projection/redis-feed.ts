import type { Closeable } from "../closeable.ts";
import type { RedisAddress, RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { StoreClock } from "../redis/store-clock.ts";
import type { ChangeFeed, FeedId, FeedListener } from "./contract.ts";
import type { KnownHeads } from "./known-heads.ts";
import { Follower } from "./redis-follower.ts";

/** How long the start waits for the feed. After that it continues in the background. */
const START_WAIT_MS = 1_000;

export interface RedisFeedOptions {
  readonly client: RedisClient;
  readonly keys: RedisKeys;
  readonly address: RedisAddress;
  readonly clientName: string;
  /** Shared with the source that reads records from the same store. */
  readonly heads: KnownHeads;
}

export class RedisChangeFeed implements ChangeFeed {
  readonly #options: RedisFeedOptions;
  readonly #clock: StoreClock;
  readonly #followers = new Set<Follower>();
  #clockStarted: Promise<void> | undefined;

  /** `client` is used to measure the clock and stays the caller's; each follower opens its own connection to `address`. */
  constructor(options: RedisFeedOptions) {
    this.#options = options;
    this.#clock = new StoreClock(options.client);
  }

  async follow(feed: FeedId, listener: FeedListener): Promise<Closeable> {
    this.#clockStarted ??= this.#clock.start();
    const follower = new Follower({ ...this.#options, clock: this.#clock, feed, listener });
    this.#followers.add(follower);
    await Promise.all([follower.start(START_WAIT_MS), this.#clockStarted]);
    return {
      close: async () => {
        this.#followers.delete(follower);
        await follower.close();
      },
    };
  }

  storeNowMs(): number | undefined {
    return this.#clock.nowMs();
  }

  async close(): Promise<void> {
    this.#clock.stop();
    await Promise.all([...this.#followers].map((follower) => follower.close()));
    this.#followers.clear();
  }
}
