import type { RedisClient } from "./connect.ts";
import { within } from "./script.ts";

const MEASURE_EVERY_MS = 10_000;
const RETRY_MS = 500;
const TIMEOUT_MS = 1_000;

/**
 * The clock of Redis, told from our monotonic one. The offset is reckoned as if Redis had read its clock when we sent the
 * question, so the estimate runs ahead by the way there at most, and never behind: what is judged by it looks older than it
 * is, not younger. Clocks of pods are not trusted, and those of machines drift, so it is measured again every 10 s.
 */
export class StoreClock {
  readonly #client: RedisClient;
  #offsetMs: number | undefined;
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
    return this.#offsetMs === undefined ? undefined : this.#offsetMs + performance.now();
  }

  readonly #measureNow = () => void this.#measure();

  async #measure(): Promise<void> {
    clearTimeout(this.#timer);
    let nextMs = MEASURE_EVERY_MS;
    const sentAtMs = performance.now();
    try {
      const [seconds, microseconds] = await within(TIMEOUT_MS, this.#client.time());
      this.#offsetMs = Number(seconds) * 1000 + Number(microseconds) / 1000 - sentAtMs;
    } catch {
      // The last offset goes on being used; it is off by the drift since.
      nextMs = RETRY_MS;
    }
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#measureNow, nextMs);
    this.#timer.unref();
  }
}
