import type { Pool } from "pg";
import type { TakenEvents } from "../../../edge/events/contract.ts";
import {
  type AnalyticsStore,
  AnalyticsUnavailable,
  type Ingested,
  type QueryAnswer,
  type QueryRun,
  type StoreQuery,
} from "../contract.ts";
import type { CountQuestion, UsageCount } from "../counts.ts";
import { answered, type ClickHouseClient, openClient } from "./client.ts";
import { countVerifications } from "./count-verifications.ts";
import { ingestPortion } from "./ingest.ts";
import { migrateClickhouse } from "./migrate.ts";
import { refusalOf } from "./refusals.ts";
import { ClickhouseReader } from "./run.ts";
import type { Layout } from "./schema.ts";

/** Tables are there after the first start of all; then this is over at once. */
const READABLE_MS_MAX = 5_000;

export interface ClickhouseAnalyticsOptions extends Layout {
  /** `http(s)://user:password@host:port/database`. */
  readonly url: string;
  /** Postgres: locks, settings of workspaces, and when keys were last used. */
  readonly db: Pool;
  /** Of what concerns an operator; nothing is logged when left out. */
  readonly log?: { warn(about: object, message: string): void };
  /** When a process that has the lock of a workspace counts as standing still; a minute when left out. */
  readonly idleMsMax?: number;
  /** How long to wait for an answer; a minute when left out. */
  readonly requestMsMax?: number;
}

/** Usage events in ClickHouse. Views add events up as they are inserted, and the tables drop by themselves what is not kept any more. */
export class ClickhouseAnalytics implements AnalyticsStore {
  readonly kind = "clickhouse";
  /** Each insert makes a part of every table, which the server merges later: a few inserts a second are what it is made for. */
  readonly portions = { bytesEnough: 2 * 1024 * 1024, ageMsEnough: 2_000 };
  readonly #options: ClickhouseAnalyticsOptions;
  readonly #client: ClickHouseClient;
  readonly #reader: ClickhouseReader;
  #ready: Promise<void> | undefined;

  /** Does not connect yet. Throws when the address is none. */
  constructor(options: ClickhouseAnalyticsOptions) {
    this.#options = options;
    this.#client = openClient(options.url, options);
    const log = options.log ?? { warn: () => undefined };
    this.#reader = new ClickhouseReader({ client: this.#client, log });
  }

  async ingest(portion: TakenEvents, nowMs: number): Promise<Ingested> {
    await this.#migrated();
    const { db, idleMsMax } = this.#options;
    return await ingestPortion({ client: this.#client, db, idleMsMax }, portion, nowMs);
  }

  async rollUp(): Promise<boolean> {
    return false;
  }

  async maintain(): Promise<boolean> {
    await this.#migrated();
    return false;
  }

  async query(query: StoreQuery, run: QueryRun): Promise<QueryAnswer> {
    await this.#readable();
    return await this.#reader.query(query, run);
  }

  async countVerifications(question: CountQuestion): Promise<readonly UsageCount[]> {
    await this.#readable();
    return await countVerifications(this.#client, question);
  }

  /** Whether it answers, with the tables in place. */
  async ping(): Promise<void> {
    await this.#migrated();
    await answered(this.#client.command({ query: "select 1" }));
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Waits for the tables, for a short time: a caller waits. Throws QueryRefused. */
  async #readable(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new AnalyticsUnavailable("ClickHouse does not answer")), READABLE_MS_MAX);
    });
    try {
      await Promise.race([this.#migrated(), tooLate]);
    } catch (error) {
      throw refusalOf(error).refused;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Once per process. What failed is tried again at the next call, so that a server that was away is used when it comes back. */
  #migrated(): Promise<void> {
    this.#ready ??= migrateClickhouse(this.#client, this.#options.db, this.#options).catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }
}
