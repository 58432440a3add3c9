import type { RedisAddress, RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { within } from "../redis/script.ts";
import { StoreClock } from "../redis/store-clock.ts";
import type { ChangeFeed, FeedId, FeedListener, Following, FollowOptions } from "./contract.ts";
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

  async follow(feed: FeedId, listener: FeedListener, options: FollowOptions = {}): Promise<Following> {
    const { from, waitMs = START_WAIT_MS } = options;
    this.#clockStarted ??= this.#clock.start();
    const follower = new Follower({ ...this.#options, clock: this.#clock, feed, listener, from });
    this.#followers.add(follower);
    const started = Promise.all([follower.start(waitMs), this.#clockStarted]);
    await within(waitMs, started).catch(() => undefined);
    return {
      position: () => follower.position,
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
