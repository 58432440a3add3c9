import { ClickHouseError } from "@clickhouse/client";
import type { Pool } from "pg";
import { Registry } from "prom-client";
import type { TakenEvents } from "../../edge/events/contract.ts";
import {
  type AnalyticsStore,
  AnalyticsUnavailable,
  type Ingested,
  QueryRejected,
  type QueryResponse,
  type QueryRun,
  type StoreProblem,
  type StoreQuery,
} from "../contract.ts";
import type { CountQuery, UsageCount } from "../counts.ts";
import type { LatencyQuery, LatencyRow } from "../latencies.ts";
import { type ClickHouseClient, openClient, openReadingClient } from "./client.ts";
import { countLatencies } from "./count-latencies.ts";
import { countVerifications } from "./count-verifications.ts";
import { ingestBatch } from "./ingest.ts";
import { migrateClickhouse } from "./migrate.ts";
import { toRejection } from "./refusals.ts";
import { ClickhouseReader } from "./run.ts";
import type { Layout } from "./schema.ts";
import { errorType } from "./store-problem.ts";
import { ClickhouseWatch } from "./watch.ts";

/** Maximum wait for the schema. Only calls at the start have to wait for it. */
const READABLE_MS_MAX = 5_000;

export interface ClickhouseAnalyticsOptions extends Layout {
  /** `http(s)://user:password@host:port/database`. */
  readonly url: string;
  /** Address with a read-only user for queries. Default: `url`. */
  readonly readerUrl?: string | undefined;
  /** Postgres pool for locks, workspace settings and the last use of keys. */
  readonly db: Pool;
  /** Logs failures that concern an operator. Default: no logging. */
  readonly log?: { warn(about: object, message: string): void };
  /** Metrics registry. Default: a new registry. */
  readonly metrics?: Registry;
  /** Idle time after which a lock holder loses its workspace lock. Default: 60 s. */
  readonly idleMsMax?: number;
  /** Request timeout. Default: 60 s. */
  readonly requestMsMax?: number;
}

/** Analytics store on ClickHouse. Materialized views aggregate events at insertion, and table TTLs enforce retention. */
export class ClickhouseAnalytics implements AnalyticsStore {
  readonly kind = "clickhouse";
  /**
   * Batching hints. Each insert creates a part in every table, which the server must merge later, so ClickHouse recommends at most a few
   * inserts per second.
   */
  readonly portions = { bytesEnough: 2 * 1024 * 1024, ageMsEnough: 2_000 };
  readonly #options: ClickhouseAnalyticsOptions;
  readonly #client: ClickHouseClient;
  readonly #readingClient: ClickHouseClient;
  readonly #watching: ClickHouseClient;
  readonly #watch: ClickhouseWatch;
  readonly #reader: ClickhouseReader;
  #ready: Promise<void> | undefined;

  /** Creates the store without connecting. Throws if the address is invalid. */
  constructor(options: ClickhouseAnalyticsOptions) {
    this.#options = options;
    const { url, readerUrl, requestMsMax } = options;
    this.#client = openClient(url, { requestMsMax });
    this.#readingClient = openReadingClient({ url, readerUrl }, { requestMsMax });
    const log = options.log ?? { warn: () => undefined };
    this.#watching = openClient(options.url, { connectionsMax: 1 });
    this.#watch = new ClickhouseWatch({ client: this.#watching, metrics: options.metrics ?? new Registry() });
    this.#reader = new ClickhouseReader({ client: this.#readingClient, watch: this.#watch, log });
  }

  async ingest(batch: TakenEvents, nowMs: number): Promise<Ingested> {
    await this.#migrated();
    const { db, idleMsMax } = this.#options;
    try {
      return await ingestBatch({ client: this.#client, watch: this.#watch, db, idleMsMax }, batch, nowMs);
    } catch (error) {
      // The table is missing because an empty database has replaced the previous one, so the schema must be created again.
      if (error instanceof AnalyticsUnavailable && errorType(error.cause) === "UNKNOWN_TABLE") this.#ready = undefined;
      throw error;
    }
  }

  async rollUp(): Promise<boolean> {
    return false;
  }

  async maintain(): Promise<boolean> {
    await this.#migrated();
    return false;
  }

  async query(query: StoreQuery, run: QueryRun): Promise<QueryResponse> {
    await this.#readable();
    return await this.#reader.query(query, run);
  }

  countVerifications(question: CountQuery): Promise<readonly UsageCount[]> {
    return this.#counted(() => countVerifications(this.#readingClient, question));
  }

  countLatencies(question: LatencyQuery): Promise<readonly LatencyRow[]> {
    return this.#counted(() => countLatencies(this.#readingClient, question));
  }

  /** Returns 0, because inserting events also updates the count tables. */
  async uncountedForMs(): Promise<number> {
    return 0;
  }

  findProblem(): Promise<StoreProblem | undefined> {
    return this.#watch.look();
  }

  async close(): Promise<void> {
    await Promise.all([this.#client.close(), this.#readingClient.close(), this.#watching.close()]);
  }

  async #counted<Row>(count: () => Promise<readonly Row[]>): Promise<readonly Row[]> {
    await this.#readable();
    try {
      return await count();
    } catch (error) {
      if (error instanceof QueryRejected && error.reason === "unavailable") this.#watch.failed("query", error.cause);
      throw error;
    }
  }

  /** Waits for the schema, but only briefly, because a caller waits for the result. Throws QueryRejected. */
  async #readable(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new AnalyticsUnavailable("ClickHouse does not answer")), READABLE_MS_MAX);
    });
    try {
      await Promise.race([this.#migrated(), tooLate]);
    } catch (error) {
      throw toRejection(error).refused;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Migrates once per process. A failed migration is repeated by the next call, so that a server becomes usable as soon as it is reachable
   * again.
   */
  #migrated(): Promise<void> {
    this.#ready ??= migrateClickhouse(this.#client, this.#options.db, this.#options).then(
      () => this.#watch.succeeded("schema"),
      (error: unknown) => {
        this.#ready = undefined;
        // Records only ClickHouse errors; all other errors come from Postgres.
        if (error instanceof AnalyticsUnavailable || error instanceof ClickHouseError) {
          this.#watch.failed("schema", error);
        }
        throw error;
      },
    );
    return this.#ready;
  }
}
