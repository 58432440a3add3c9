import { within } from "./script.ts";

/*
 * Converts a caller's timeout into a deadline in Redis time. If Redis reaches a command after its deadline, for example because Redis or
 * the network stalled, the command must do nothing, because its caller no longer waits for the result.
 *
 * Each reply with Redis time bounds the offset between the clocks: Redis read its clock after the request was sent and before the reply
 * arrived. Deadlines use the lower bound, so that they may be early by the latency of the reply, but are never late. The best bound of the
 * last seconds is used. A reply that contradicts it shows that the clock was set back, and the bound is dropped. If the clock was set
 * forward, deadlines are too early: the script replies that the command was too late, the reply corrects the bound, and the command, which
 * has changed nothing, may be sent again.
 */

/** Time for which a measured bound is used. It is short enough that clocks drift apart by only a few milliseconds. */
const KNOWN_FOR_MS = 10_000;
/** Resolution of times in scripts, which return integer milliseconds, rounded down. */
const RESOLUTION_MS = 1;
const MEASURE_TIMEOUT_MS = 1_000;

export interface TimeReply {
  /** `performance.now()` before the command was sent. */
  readonly sentAtMs: number;
  /** `performance.now()` after the reply arrived. */
  readonly receivedAtMs: number;
  /** Redis time, Unix ms. */
  readonly storeMs: number;
}

export interface AsksTime {
  /** Returns Redis time: seconds and microseconds. */
  time(): Promise<readonly (string | number)[]>;
}

export class DeadlineClock {
  /** Lower bound of Redis clock − monotonic clock: the best measurement of the current and the previous period. */
  #now: number | undefined;
  #before: number | undefined;
  #periodEndsMs = 0;
  #measuring: Promise<void> | undefined;

  observe({ sentAtMs, receivedAtMs, storeMs }: TimeReply): void {
    const atLeast = storeMs - receivedAtMs;
    const atMost = storeMs + RESOLUTION_MS - sentAtMs;
    this.#roll(receivedAtMs);
    const known = this.#known();
    if (known !== undefined && atMost < known) this.#before = this.#now = undefined;
    this.#now = Math.max(this.#now ?? atLeast, atLeast);
  }

  /** Drops the bounds. Called for a new connection, which may lead to another machine. */
  forget(): void {
    this.#now = this.#before = undefined;
  }

  /** Returns the latest Redis time, in integer Unix ms, at which a command may begin; `undefined` while the offset is unknown. */
  deadlineOf(dueMs: number, nowMs: number): number | undefined {
    this.#roll(nowMs);
    const known = this.#known();
    return known === undefined ? undefined : Math.floor(known + dueMs);
  }

  /** Reads Redis time. Concurrent callers share one request. */
  measure(client: AsksTime): Promise<void> {
    this.#measuring ??= this.#measure(client).finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  /**
   * Calls `run`, which must do nothing and return `undefined` after its deadline. In that case, measures the clock and calls `run` once
   * more. Throws if both calls were too late, or if the caller's time is over.
   */
  async inTime<T>(
    client: AsksTime,
    { dueMs }: { readonly dueMs: number },
    run: (deadlineMs: number) => Promise<T | undefined>,
  ): Promise<T> {
    for (let attempt = 0; attempt < 2; attempt++) {
      const nowMs = performance.now();
      if (nowMs >= dueMs) break;
      if (attempt > 0 || this.deadlineOf(dueMs, nowMs) === undefined) await this.measure(client);
      const done = await run(this.deadlineOf(dueMs, nowMs) ?? 0);
      if (done !== undefined) return done;
    }
    throw new Error("the store came to it too late, and did nothing");
  }

  async #measure(client: AsksTime): Promise<void> {
    const sentAtMs = performance.now();
    const [seconds, microseconds] = await within(MEASURE_TIMEOUT_MS, client.time());
    const storeMs = Math.floor(Number(seconds) * 1000 + Number(microseconds) / 1000);
    this.observe({ sentAtMs, receivedAtMs: performance.now(), storeMs });
  }

  #known(): number | undefined {
    if (this.#now === undefined || this.#before === undefined) return this.#now ?? this.#before;
    return Math.max(this.#now, this.#before);
  }

  #roll(nowMs: number): void {
    if (nowMs < this.#periodEndsMs) return;
    this.#before = nowMs < this.#periodEndsMs + KNOWN_FOR_MS ? this.#now : undefined;
    this.#now = undefined;
    this.#periodEndsMs = nowMs + KNOWN_FOR_MS;
  }
}
