import type { Pool } from "pg";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { doubledMs } from "../../core/backoff.ts";
import type { TakenEvents } from "../../edge/events/contract.ts";
import { isDatabaseUnavailable, isUnavailableForAll } from "../../postgres/failures.ts";
import { type AnalyticsStore, type Ingested, QueryRejected } from "../contract.ts";
import type { CountQuery, UsageCount } from "../counts.ts";
import type { LatencyQuery, LatencyRow } from "../latencies.ts";
import { longestRetention } from "../retention.ts";
import { countLatencies } from "./count-latencies.ts";
import { countVerifications } from "./count-verifications.ts";
import { ingestBatch, type RecordedUsage } from "./ingest.ts";
import { keepPartitions } from "./maintain.ts";
import { RollUpMetrics } from "./metrics.ts";
import { RollUpFailed, rollUpBatch, waitAfter } from "./roll-up.ts";
import { findQueueDepth, findWaitingMs } from "./rollup-queue.ts";

const GROUPS_MAX = 40_000;
/** Retry delays after a failed roll-up of a workspace. */
const RETRY = { firstMs: 1_000, maxMs: 60_000 };

export interface PostgresAnalyticsOptions {
  readonly db: Pool;
  /** Clock in Unix ms; determines retention. */
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly metrics: Registry;
  /**
   * Whether this process formats rows for COPY. This takes less CPU time in Postgres but four times as much here, so it is meant for
   * processes that serve no requests.
   */
  readonly copies?: boolean;
  /** Maximum number of groups per roll-up. Default: 40,000; such a roll-up reads about 10 MB and takes up to a few seconds. */
  readonly groupsMax?: number;
}

/** Workspace whose roll-up has failed and is not retried yet. */
interface PutOff {
  readonly delayMs: number;
  /** End of the delay, as `performance.now()`. */
  readonly untilMs: number;
}

/** Analytics store in the main Postgres database. */
export class PostgresAnalytics implements Omit<AnalyticsStore, "query"> {
  readonly kind = "postgres";
  readonly #options: PostgresAnalyticsOptions;
  readonly #metrics: RollUpMetrics;
  readonly #noted: RecordedUsage | undefined;
  readonly #putOff = new Map<string, PutOff>();
  /** Duration of the last roll-up, including all of its batches. */
  #ranMs = 0;
  /** Whether entries remained in the queue after the last batch. */
  #isMore = false;

  constructor(options: PostgresAnalyticsOptions) {
    this.#options = options;
    this.#noted = options.copies === true ? new Map() : undefined;
    this.#metrics = new RollUpMetrics(options.metrics);
  }

  ingest(batch: TakenEvents, nowMs: number): Promise<Ingested> {
    return ingestBatch(this.#options.db, batch, { nowMs, noted: this.#noted });
  }

  async rollUp({ patient = false }: { patient?: boolean } = {}): Promise<boolean> {
    const { db } = this.#options;
    if (patient && !this.#isMore) {
      const depth = await findQueueDepth(db);
      this.#metrics.recordDepth(depth);
      if (depth.events === 0 || depth.ageMs < waitAfter(this.#ranMs)) return false;
    }
    const startedMs = performance.now();
    const beforeMs = this.#isMore ? this.#ranMs : 0;
    this.#isMore = false;
    this.#isMore = await this.#rollUpSome();
    this.#ranMs = beforeMs + performance.now() - startedMs;
    return this.#isMore;
  }

  async maintain(nowMs: number): Promise<boolean> {
    await keepPartitions(this.#options.db, nowMs);
    return false;
  }

  countVerifications(question: CountQuery): Promise<readonly UsageCount[]> {
    return countVerifications(this.#options.db, question);
  }

  countLatencies(question: LatencyQuery): Promise<readonly LatencyRow[]> {
    return countLatencies(this.#options.db, question);
  }

  async uncountedForMs(workspaceId: string): Promise<number> {
    try {
      return await findWaitingMs(this.#options.db, workspaceId);
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      throw new QueryRejected("unavailable", "The analytics store does not respond; try again later.", {
        cause: error,
      });
    }
  }

  async close(): Promise<void> {}

  /**
   * Rolls up one batch of all workspaces. If this fails, rolls up each workspace separately, so that a failure is limited to its workspace.
   */
  async #rollUpSome(): Promise<boolean> {
    const except = this.#exceptions();
    try {
      return await this.#batch({ except });
    } catch (error) {
      if (!(error instanceof RollUpFailed) || isUnavailableForAll(error.cause) || error.workspaceIds.length === 0)
        throw error;
      let isMore = false;
      for (const workspaceId of error.workspaceIds) isMore = (await this.#alone(workspaceId)) || isMore;
      return isMore;
    }
  }

  async #alone(workspaceId: string): Promise<boolean> {
    try {
      const isMore = await this.#batch({ except: [], only: workspaceId });
      this.#putOff.delete(workspaceId);
      return isMore;
    } catch (error) {
      if (error instanceof RollUpFailed && isUnavailableForAll(error.cause)) throw error;
      const delayMs = doubledMs(this.#putOff.get(workspaceId)?.delayMs ?? 0, RETRY);
      this.#putOff.set(workspaceId, { delayMs, untilMs: performance.now() + delayMs });
      this.#metrics.failed();
      this.#options.log.error(
        { err: error, workspaceId, delayMs },
        "a workspace's events could not be rolled up; retrying",
      );
      return false;
    }
  }

  async #batch(choice: { except: readonly string[]; only?: string }): Promise<boolean> {
    const { db, nowMs, groupsMax = GROUPS_MAX } = this.#options;
    const startedMs = performance.now();
    const kept = { nowMs: nowMs(), retention: await longestRetention(db) };
    const { events, isMore, workspaceIds } = await rollUpBatch(db, { groupsMax, ...choice }, kept);
    for (const id of workspaceIds) this.#putOff.delete(id);
    this.#metrics.ran({ events, ms: performance.now() - startedMs });
    return isMore;
  }

  /** Returns workspaces whose roll-up failed and is waiting for a retry. */
  #exceptions(): string[] {
    const nowMs = performance.now();
    return [...this.#putOff].filter(([, { untilMs }]) => untilMs > nowMs).map(([id]) => id);
  }
}
