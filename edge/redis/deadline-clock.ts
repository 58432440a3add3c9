import { within } from "./script.ts";

/*
 * Until when, by the store's clock, a command may still be carried out whose caller gives up at a moment of ours. A command that
 * the store comes to later, because it hung or the network did, must do nothing: nobody is told of it any more.
 *
 * Each reply that tells the store's time says two things of the difference between its clock and ours: it read its clock after we
 * had asked, and before we had the answer. Deadlines are reckoned with the lower bound, so that they are early by the way of the
 * answer, and never late. The best one of the last seconds counts; a reply that contradicts it shows a clock that was set
 * back, and what was known is forgotten. One that was set forward makes deadlines too early: the script says that the command
 * came late, that very reply corrects the clock, and the command, which has done nothing, may be sent again.
 */

/** Clocks drift by milliseconds in such a time. */
const KNOWN_FOR_MS = 10_000;
/** The scripts tell whole milliseconds, rounded down. */
const RESOLUTION_MS = 1;
const MEASURE_TIMEOUT_MS = 1_000;

export interface ToldTime {
  /** `performance.now()` before the command was sent. */
  readonly sentAtMs: number;
  /** `performance.now()` when the reply was there. */
  readonly receivedAtMs: number;
  /** The store's clock, Unix ms. */
  readonly storeMs: number;
}

export interface AsksTime {
  /** Seconds and microseconds, as Redis tells them. */
  time(): Promise<readonly (string | number)[]>;
}

export class DeadlineClock {
  /** Store clock − monotonic clock is at least this: the best of the period now, and of the one before. */
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

  /** For a new connection: it may lead to another machine. */
  forget(): void {
    this.#now = this.#before = undefined;
  }

  /** The store's clock, whole Unix ms, before which a command must be begun; undefined while too little is known. */
  deadlineOf(dueMs: number, nowMs: number): number | undefined {
    this.#roll(nowMs);
    const known = this.#known();
    return known === undefined ? undefined : Math.floor(known + dueMs);
  }

  /** Asks for the time; those who ask meanwhile wait for the same answer. */
  measure(client: AsksTime): Promise<void> {
    this.#measuring ??= this.#measure(client).finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  /**
   * Runs what does nothing after a deadline of the store's clock, and then returns undefined. Once more if it did, by the clock as it
   * is known then. Throws when it came too late both times, or the caller's time is over.
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
