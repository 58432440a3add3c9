import type { EventSink, UsageEvent } from "./contract.ts";

/*
 * Collects events and sends them 200 ms after the first or when there are 500. One batch is under way at a time; what cannot
 * be sent waits for the next attempt (an event has an id, so that sending it twice is harmless). Only so many wait: beyond
 * that new ones are dropped and counted.
 */

const FLUSH_AFTER_MS = 200;
const BATCH_MAX = 500;
const WAITING_MAX = 10_000;

export interface BufferOptions {
  /** Rejects when it is not known that all were stored. */
  readonly send: (events: readonly UsageEvent[]) => Promise<void>;
  readonly waitingMax?: number;
}

export class BufferedSink implements EventSink {
  readonly #send: (events: readonly UsageEvent[]) => Promise<void>;
  readonly #waitingMax: number;
  #waiting: UsageEvent[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #isClosed = false;

  constructor({ send, waitingMax = WAITING_MAX }: BufferOptions) {
    this.#send = send;
    this.#waitingMax = waitingMax;
  }

  add(event: UsageEvent): void {
    if (this.#isClosed || this.#waiting.length >= this.#waitingMax) {
      this.#dropped += 1;
      return;
    }
    const waiting = this.#waiting.push(event);
    if (waiting === BATCH_MAX && this.#sending === undefined) void this.flush();
    else this.#schedule();
  }

  /** Tries each event that is waiting now once; what fails goes on waiting. */
  async flush(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting.length === 0) return;
    this.#sending = this.#sendAll();
    await this.#sending;
  }

  dropped(): number {
    return this.#dropped;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    clearTimeout(this.#timer);
    this.#dropped += this.#waiting.length;
    this.#waiting = [];
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#sending !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => void this.flush(), FLUSH_AFTER_MS);
    this.#timer.unref();
  }

  async #sendAll(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#waiting.slice(0, BATCH_MAX);
        await this.#send(batch);
        this.#waiting = this.#waiting.slice(batch.length);
      }
    } catch {
      // They stay where they are; `dropped` counts those for which there is no room in the end.
    } finally {
      this.#sending = undefined;
      if (this.#waiting.length > 0) this.#schedule();
    }
  }
}
