import type { RedisAddress, RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { within } from "../redis/script.ts";
import { StoreClock } from "../redis/store-clock.ts";
import type { ChangeListener, ChangeStream, Following, FollowOptions, StreamId } from "./contract.ts";
import { Follower } from "./redis-follower.ts";
import type { RollbackDetector } from "./rollback-detector.ts";

/** Maximum time that startup waits for the change stream; afterwards the start continues in the background. */
const START_WAIT_MS = 1_000;

export interface RedisChangeStreamOptions {
  readonly client: RedisClient;
  readonly keys: RedisKeys;
  readonly address: RedisAddress;
  readonly clientName: string;
  /** Rollback detector, which the record source of the same Redis uses too. */
  readonly rollbacks: RollbackDetector;
}

export class RedisChangeStream implements ChangeStream {
  readonly #options: RedisChangeStreamOptions;
  readonly #clock: StoreClock;
  readonly #followers = new Set<Follower>();
  #clockStarted: Promise<void> | undefined;

  /** `client` is used to measure the clock, and its owner closes it. Each follower opens its own connection to `address`. */
  constructor(options: RedisChangeStreamOptions) {
    this.#options = options;
    this.#clock = new StoreClock(options.client);
  }

  async follow(stream: StreamId, listener: ChangeListener, options: FollowOptions = {}): Promise<Following> {
    const { from, waitMs = START_WAIT_MS } = options;
    this.#clockStarted ??= this.#clock.start();
    const follower = new Follower({ ...this.#options, clock: this.#clock, stream, listener, from });
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
