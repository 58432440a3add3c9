import { ClockEstimate } from "./clock-estimate.ts";
import type { RedisClient } from "./connect.ts";
import { within } from "./script.ts";

const MEASURE_EVERY_MS = 10_000;
const RETRY_MS = 500;
const TIMEOUT_MS = 1_000;

/**
 * Redis time, measured every 10 s and after each new connection, because clocks drift and a failover switches to another machine's clock.
 * The clocks of pods are not trusted. If a measurement fails, the previous estimate stays in use and gets less precise as clocks drift.
 */
export class StoreClock {
  readonly #client: RedisClient;
  readonly #estimate = new ClockEstimate();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(client: RedisClient) {
    this.#client = client;
  }

  /** Resolves after the first measurement, whether it succeeds or fails. */
  async start(): Promise<void> {
    // Measures again on each connection, because a failover switches to another machine's clock.
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
   * Takes a measurement from the result of a TIME command that was sent for another purpose. `sentMs` is its send time on the monotonic
   * clock. Throws if the result is not a time.
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
