import type { Registry } from "prom-client";
import { AnalyticsUnavailable, type StoreProblem } from "../contract.ts";
import type { ClickHouseClient } from "./client.ts";
import { ClickhouseMetrics, type Operation } from "./metrics.ts";
import { evaluateProblem, meaningOf } from "./store-problem.ts";

const RESPONSE_MS_MAX = 2_000;
/** Interval, in probes, at which a query is sent instead of `/ping`. Only the query checks the credentials. */
const ADMITTED_EVERY_LOOKS = 30;

export interface WatchOptions {
  /** Client with a connection of its own, because a server is reachable even if all other connections are busy with queries. */
  readonly client: ClickHouseClient;
  readonly metrics: Registry;
}

/** Tracks ClickHouse health from the results of this process's operations and from periodic probes. */
export class ClickhouseWatch {
  readonly #client: ClickHouseClient;
  readonly #metrics: ClickhouseMetrics;
  /** Latest failure of each kind of operation, timed by `performance.now()`. A success removes it. */
  readonly #failures = new Map<Operation, { readonly problem: StoreProblem; readonly atMs: number }>();
  /** Start times of the inserts in flight. */
  readonly #inserting = new Set<{ readonly sinceMs: number }>();
  #looks = 0;
  #looking: Promise<StoreProblem | undefined> | undefined;
  #wasWell = false;

  constructor({ client, metrics }: WatchOptions) {
    this.#client = client;
    this.#metrics = new ClickhouseMetrics(metrics);
  }

  /** Runs an insert of `rows` rows and records its result. */
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
    const { problem } = meaningOf(error instanceof AnalyticsUnavailable ? error.cause : error);
    this.#failures.set(operation, { problem, atMs: performance.now() });
    this.#metrics.failed(operation, problem);
  }

  /** Probes the server, or returns the probe in flight. Never throws. */
  look(): Promise<StoreProblem | undefined> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<StoreProblem | undefined> {
    const noResponse = await this.#ask();
    const nowMs = performance.now();
    const problem = evaluateProblem({
      noResponse,
      failures: [...this.#failures.values()].map(({ problem, atMs }) => ({
        problem,
        agoMs: nowMs - atMs,
      })),
      insertingMs: Math.max(0, ...[...this.#inserting].map(({ sinceMs }) => nowMs - sinceMs)),
    });
    this.#wasWell = problem === undefined;
    this.#metrics.recordCheck(problem);
    return problem;
  }

  async #ask(): Promise<StoreProblem | undefined> {
    const select = !this.#wasWell || this.#looks % ADMITTED_EVERY_LOOKS === 0;
    this.#looks += 1;
    const within = { abort_signal: AbortSignal.timeout(RESPONSE_MS_MAX) };
    try {
      if (select) await this.#client.command({ query: "select 1", ...within });
      else {
        const response = await this.#client.ping({ select: false, ...within });
        if (!response.success) throw response.error;
      }
      return undefined;
    } catch (error) {
      const { problem } = meaningOf(error);
      // A server that takes two seconds for a trivial query counts as stalled.
      return problem === "slow" ? "unavailable" : problem;
    }
  }
}
