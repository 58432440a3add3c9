import { ClockEstimate } from "./clock-estimate.ts";
import type { RedisClient } from "./connect.ts";
import { within } from "./script.ts";

const MEASURE_EVERY_MS = 10_000;
const RETRY_MS = 500;
const TIMEOUT_MS = 1_000;

/**
 * The clock of Redis, measured every 10 s and after each new connection, because clocks drift and a failover brings another
 * machine's clock. Clocks of pods are not trusted. After a failed measurement the old estimate is kept, and is off by the
 * drift since.
 */
export class StoreClock {
  readonly #client: RedisClient;
  readonly #estimate = new ClockEstimate();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(client: RedisClient) {
    this.#client = client;
  }

  /** Resolves after the first measurement, or its failure. */
  async start(): Promise<void> {
    // After a failover it is another machine's clock.
    this.#client.on("ready", this.#measureNow);
    await this.#measure();
  }

  stop(): void {
    this.#isStopped = true;
    this.#client.off("ready", this.#measureNow);
    clearTimeout(this.#timer);
  }

  nowMs(): number | undefined {
    return this.#estimate.nowMs(performance.now());
  }

  /**
   * Uses a measurement that came with another reply: the result of TIME, for a request that was sent at `sentMs` of our monotonic clock.
   * Throws when it is not a time.
   */
  take(sentMs: number, [seconds, microseconds]: readonly unknown[]): void {
    const storeMs = Number(seconds) * 1000 + Number(microseconds) / 1000;
    if (!Number.isFinite(storeMs)) throw new Error("the store's clock cannot be read");
    this.#estimate.take({ sentMs, receivedMs: performance.now(), storeMs });
  }

  readonly #measureNow = () => void this.#measure();

  async #measure(): Promise<void> {
    clearTimeout(this.#timer);
    let nextMs = MEASURE_EVERY_MS;
    const sentMs = performance.now();
    try {
      this.take(sentMs, await within(TIMEOUT_MS, this.#client.time()));
    } catch {
      nextMs = RETRY_MS;
    }
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#measureNow, nextMs);
    this.#timer.unref();
  }
}
