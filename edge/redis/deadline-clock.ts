import { within } from "./script.ts";

/*
 * Converts the moment at which a caller gives up into a deadline by the store's clock. If the store reaches a command later, because it
 * or the network was stuck, the command must do nothing: its caller no longer waits for the result.
 *
 * Each reply with the store's time bounds the difference between its clock and ours: the store read its clock after we
 * sent the request and before we got the reply. Deadlines use the lower bound, so that they are early by the time of the reply's
 * way, and never late. The best bound of the last seconds is used. A reply that contradicts it shows that the clock was set
 * back, and the bound is forgotten. If the clock was set forward, deadlines are too early: the script answers that the command
 * came late, that reply corrects the clock, and the command, which has done nothing, may be sent again.
 */

/** In this time clocks drift by milliseconds only. */
const KNOWN_FOR_MS = 10_000;
/** The scripts return whole milliseconds, rounded down. */
const RESOLUTION_MS = 1;
const MEASURE_TIMEOUT_MS = 1_000;

export interface ToldTime {
  /** `performance.now()` before the command was sent. */
  readonly sentAtMs: number;
  /** `performance.now()` when the reply had arrived. */
  readonly receivedAtMs: number;
  /** The store's clock, Unix ms. */
  readonly storeMs: number;
}

export interface AsksTime {
  /** Seconds and microseconds, as Redis returns them. */
  time(): Promise<readonly (string | number)[]>;
}

export class DeadlineClock {
  /** Store clock − monotonic clock is at least this: the best bound of the current period, and of the one before. */
  #now: number | undefined;
  #before: number | undefined;
  #periodEndsMs = 0;
  #measuring: Promise<void> | undefined;

  observe({ sentAtMs, receivedAtMs, storeMs }: ToldTime): void {
    const atLeast = storeMs - receivedAtMs;
    const atMost = storeMs + RESOLUTION_MS - sentAtMs;
    this.#roll(receivedAtMs);
    const known = this.#known();
    if (known !== undefined && atMost < known) this.#before = this.#now = undefined;
    this.#now = Math.max(this.#now ?? atLeast, atLeast);
  }

  /** For a new connection, which may lead to another machine. */
  forget(): void {
    this.#now = this.#before = undefined;
  }

  /** The latest whole Unix ms of the store's clock at which a command may begin; undefined while the clock is unknown. */
  deadlineOf(dueMs: number, nowMs: number): number | undefined {
    this.#roll(nowMs);
    const known = this.#known();
    return known === undefined ? undefined : Math.floor(known + dueMs);
  }

  /** Reads the time; concurrent callers share one request. */
  measure(client: AsksTime): Promise<void> {
    this.#measuring ??= this.#measure(client).finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  /**
   * Calls `run`, which must do nothing after the deadline and then return undefined; in that case measures the clock and calls it once
   * more. Throws when it was too late both times, or the caller's time is over.
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
