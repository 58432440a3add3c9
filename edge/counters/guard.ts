import type { Consumed } from "../../core/charges.ts";
import { Slots, type Slotted } from "../slots.ts";
import { type ConsumeRequest, CountersUnavailable } from "./contract.ts";
import type { Caller, ConsumeOptions, StrictCounters } from "./strict.ts";

/*
 * A circuit breaker with a timeout: gives up on a call that gets no response in time, and stops calling a store while most calls fail.
 *
 *   closed ── half of at least 20 calls in the last 5 to 10 s failed ──► open ── after 1 s ──► probing the store
 *      ▲        or no call got a response for 0.9 s                       ▲                        │
 *      │                                                                  │                        │
 *      └─────────────────────────── response ─────────────────────────────┼────────────────────────┤
 *                                                                         └───── no response ──────┘
 *
 * While the breaker is open, every call fails immediately; no call waits for the probe. A store without any response has a separate rule,
 * because a store that hangs after many successes reaches the failure ratio only after several seconds, during which each call would wait.
 * Any response resets this rule, even a late one. Each call passes its deadline on (`Caller`), so that the counters consume no units for a
 * caller that has given up. A late reply is ignored. One gap remains: if the store counts and then stalls or is lost before it replies,
 * units are consumed for a caller that has given up. This affects at most the commands of one turn of the store's event loop.
 */

const BUCKET_MS = 5_000;
const CALLS_MIN = 20;
const FAILURE_SHARE = 0.5;
const OPEN_MS = 1_000;
/**
 * Time without a response after which the breaker opens. An api-server waits 1 s for a call. When the first call without a response times
 * out, the breaker must open, because the caller would otherwise retry and wait again. The time is shorter than 1 s, because a busy process
 * may read the previous response only tens of milliseconds after it has sent that call.
 */
const SILENCE_MS = 900;

export class Breaker {
  #openUntilMs = 0;
  #isProbing = false;
  /** Send time of the first call after the last response. */
  #silentSinceMs: number | undefined;
  #bucketEndsMs = 0;
  #now = { calls: 0, failures: 0 };
  #before = { calls: 0, failures: 0 };

  get isOpen(): boolean {
    return this.#openUntilMs !== 0;
  }

  /**
   * Returns whether a call may be made. While the breaker is open, one call per second may be made. In all methods, `nowMs` is a time of a
   * monotonic clock.
   */
  admits(nowMs: number): boolean {
    if (this.#openUntilMs === 0) return true;
    if (nowMs < this.#openUntilMs || this.#isProbing) return false;
    this.#isProbing = true;
    return true;
  }

  sent(nowMs: number): void {
    this.#silentSinceMs ??= nowMs;
  }

  /** Called when the store responded, in time or late. */
  answered(): void {
    this.#silentSinceMs = undefined;
  }

  /** Called when a call timed out, after the process has read all replies that arrived. */
  checkSilence(nowMs: number): void {
    if (nowMs - (this.#silentSinceMs ?? nowMs) >= SILENCE_MS) this.#openUntilMs = nowMs + OPEN_MS;
  }

  succeeded(nowMs: number): void {
    if (this.#isProbing) this.#reset();
    this.#roll(nowMs);
    this.#now.calls += 1;
  }

  failed(nowMs: number): void {
    this.#roll(nowMs);
    this.#now.calls += 1;
    this.#now.failures += 1;
    const calls = this.#now.calls + this.#before.calls;
    const failures = this.#now.failures + this.#before.failures;
    const isBad = calls >= CALLS_MIN && failures >= FAILURE_SHARE * calls;
    if (this.#isProbing || isBad) this.#openUntilMs = nowMs + OPEN_MS;
    this.#isProbing = false;
  }

  #roll(nowMs: number): void {
    if (nowMs < this.#bucketEndsMs) return;
    const isNext = nowMs < this.#bucketEndsMs + BUCKET_MS;
    this.#before = isNext ? this.#now : { calls: 0, failures: 0 };
    this.#now = { calls: 0, failures: 0 };
    this.#bucketEndsMs = nowMs + BUCKET_MS;
  }

  #reset(): void {
    this.#isProbing = false;
    this.#openUntilMs = 0;
    this.#now = { calls: 0, failures: 0 };
    this.#before = { calls: 0, failures: 0 };
  }
}

export interface GuardOptions {
  readonly timeoutMs: number;
  /**
   * Sends a request that tests the connection to the store. Rejects if the connection is lost, for example after 5 s without data. No call
   * waits for this request, so it may take longer than a call if the store is slow. Default: one of the calls tests the store.
   */
  readonly probe?: () => Promise<unknown>;
}

/*
 * In a busy process the timer may fire before the process has read a reply that has already arrived, or even before it has sent the
 * request. So the process reads what has arrived before it fails a call, and a call whose timer is late gets its timeout once more, up to
 * `EXTENSION_MS_MAX`. Otherwise a busy process would take Redis for unreachable.
 */

/** Delay of a timer at which the process counts as busy. */
const LATE_MS = 10;
const EXTENSION_MS_MAX = 250;

/** A call that has no response yet. */
interface Pending extends Slotted, Caller {
  dueMs: number;
  readonly reject: (error: unknown) => void;
  isExtended: boolean;
}

export class GuardedCounters implements StrictCounters {
  readonly #inner: StrictCounters;
  readonly #options: GuardOptions;
  readonly #breaker = new Breaker();
  readonly #pending = new Slots<Pending>();
  /** One timer for all calls, because a timer for each call would cost more than the call itself. */
  #timer: NodeJS.Timeout | undefined;

  constructor(inner: StrictCounters, options: GuardOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  consume(request: ConsumeRequest, options?: ConsumeOptions): Promise<Consumed> {
    const nowMs = performance.now();
    const { timeoutMs, probe } = this.#options;
    const wasOpen = this.#breaker.isOpen;
    let admits = this.#breaker.admits(nowMs);
    if (admits && wasOpen && probe !== undefined) {
      this.#probe(probe);
      admits = false;
    }
    if (!admits) {
      return Promise.reject(
        new CountersUnavailable("most of the last calls to the store failed, so it is not called for now"),
      );
    }
    this.#breaker.sent(nowMs);
    return new Promise((resolve, reject) => {
      const pending: Pending = { dueMs: nowMs + timeoutMs, reject, isExtended: false, slot: -1 };
      this.#pending.add(pending);
      if (this.#timer === undefined) this.#arm(timeoutMs);
      this.#inner.consume(request, { ...options, caller: pending }).then(
        (consumed) => {
          this.#breaker.answered();
          if (!this.#pending.remove(pending)) return;
          this.#breaker.succeeded(performance.now());
          resolve(consumed);
        },
        (error: unknown) => {
          if (!this.#pending.remove(pending)) return;
          this.#breaker.failed(performance.now());
          reject(error);
        },
      );
    });
  }

  close(): Promise<void> {
    clearTimeout(this.#timer);
    return this.#inner.close();
  }

  #probe(probe: () => Promise<unknown>): void {
    probe().then(
      () => {
        this.#breaker.answered();
        this.#breaker.succeeded(performance.now());
      },
      () => this.#breaker.failed(performance.now()),
    );
  }

  #giveUp(pending: Pending): void {
    if (!this.#pending.remove(pending)) return;
    const nowMs = performance.now();
    this.#breaker.failed(nowMs);
    // Opens the breaker before the caller gets its error, because the caller may call again immediately.
    this.#breaker.checkSilence(nowMs);
    pending.reject(new CountersUnavailable(`the store gave no answer within ${this.#options.timeoutMs} ms`));
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => this.#onTimer(), ms);
    this.#timer.unref();
  }

  /** Fails overdue calls. The timer is set only while calls are in flight; the next call sets it again. */
  #onTimer(): void {
    const nowMs = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const pending of this.#pending) {
      if (pending.dueMs <= nowMs) {
        if (pending.isExtended || nowMs - pending.dueMs <= LATE_MS) {
          // Runs after the event loop has read all replies that have arrived.
          setImmediate(() => this.#giveUp(pending));
          continue;
        }
        pending.isExtended = true;
        pending.dueMs = nowMs + Math.min(this.#options.timeoutMs, EXTENSION_MS_MAX);
      }
      nextMs = Math.min(nextMs, pending.dueMs);
    }
    this.#timer = undefined;
    // Rounds up, because a timer that fires too early would find no overdue call and be set again immediately.
    if (nextMs !== Number.POSITIVE_INFINITY) this.#arm(Math.ceil(nextMs - nowMs));
  }
}
