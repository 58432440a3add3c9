import type { Registry } from "prom-client";
import { AnalyticsUnavailable, type StoreTrouble } from "../contract.ts";
import type { ClickHouseClient } from "./client.ts";
import { ClickhouseMetrics, type Operation } from "./metrics.ts";
import { judgeTrouble, meaningOf } from "./trouble.ts";

const ANSWER_MS_MAX = 2_000;
/** `/ping` does not check who asks. */
const ADMITTED_EVERY_LOOKS = 30;

export interface WatchOptions {
  /** With a connection of its own: where queries use all others, ClickHouse is busy, not away. */
  readonly client: ClickHouseClient;
  readonly metrics: Registry;
}

/** Sees how ClickHouse does: by what becomes of the work of this process, and by asking. */
export class ClickhouseWatch {
  readonly #client: ClickHouseClient;
  readonly #metrics: ClickhouseMetrics;
  /** Of each kind of work the last failure, by `performance.now()`. A success removes it. */
  readonly #failures = new Map<Operation, { readonly trouble: StoreTrouble; readonly atMs: number }>();
  /** When the inserts that run began. */
  readonly #inserting = new Set<{ readonly sinceMs: number }>();
  #looks = 0;
  #looking: Promise<StoreTrouble | undefined> | undefined;
  #wasWell = false;

  constructor({ client, metrics }: WatchOptions) {
    this.#client = client;
    this.#metrics = new ClickhouseMetrics(metrics);
  }

  /** Runs what stores so many rows. */
  async insert<T>(rows: number, work: () => Promise<T>): Promise<T> {
    const running = { sinceMs: performance.now() };
    this.#inserting.add(running);
    try {
      const result = await work();
      this.#metrics.inserted({ rows, ms: performance.now() - running.sinceMs });
      this.succeeded("insert");
      return result;
    } catch (error) {
      this.failed("insert", error);
      throw error;
    } finally {
      this.#inserting.delete(running);
    }
  }

  succeeded(operation: Operation): void {
    this.#failures.delete(operation);
  }

  failed(operation: Operation, error: unknown): void {
    const { trouble } = meaningOf(error instanceof AnalyticsUnavailable ? error.cause : error);
    this.#failures.set(operation, { trouble, atMs: performance.now() });
    this.#metrics.failed(operation, trouble);
  }

  /** Asks it, unless a question is on its way. Never throws. */
  look(): Promise<StoreTrouble | undefined> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<StoreTrouble | undefined> {
    const noAnswer = await this.#ask();
    const nowMs = performance.now();
    const trouble = judgeTrouble({
      noAnswer,
      failures: [...this.#failures.values()].map(({ trouble, atMs }) => ({ trouble, agoMs: nowMs - atMs })),
      insertingMs: Math.max(0, ...[...this.#inserting].map(({ sinceMs }) => nowMs - sinceMs)),
    });
    this.#wasWell = trouble === undefined;
    this.#metrics.looked(trouble);
    return trouble;
  }

  async #ask(): Promise<StoreTrouble | undefined> {
    const select = !this.#wasWell || this.#looks % ADMITTED_EVERY_LOOKS === 0;
    this.#looks += 1;
    const within = { abort_signal: AbortSignal.timeout(ANSWER_MS_MAX) };
    try {
      if (select) await this.#client.command({ query: "select 1", ...within });
      else {
        const answer = await this.#client.ping({ select: false, ...within });
        if (!answer.success) throw answer.error;
      }
      return undefined;
    } catch (error) {
      const { trouble } = meaningOf(error);
      // Two seconds for nothing: it hangs.
      return trouble === "slow" ? "away" : trouble;
    }
  }
}
