import type { Pool } from "pg";
import type { TakenEvents } from "../../../edge/events/contract.ts";
import type { AnalyticsStore, Ingested, QueryAnswer, QueryRun, StoreQuery } from "../contract.ts";
import type { CountQuestion, UsageCount } from "../counts.ts";
import { answered, type ClickHouseClient, openClient } from "./client.ts";
import { countVerifications } from "./count-verifications.ts";
import { ingestPortion } from "./ingest.ts";
import { migrateClickhouse } from "./migrate.ts";
import { ClickhouseReader } from "./run.ts";
import type { Layout } from "./schema.ts";

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

  query(query: StoreQuery, run: QueryRun): Promise<QueryAnswer> {
    return this.#reader.query(query, run);
  }

  countVerifications(question: CountQuestion): Promise<readonly UsageCount[]> {
    return countVerifications(this.#client, question);
  }

  /** Whether it answers, with the tables in place. */
  async ping(): Promise<void> {
    await this.#migrated();
    await answered(this.#client.command({ query: "select 1" }));
  }

  async close(): Promise<void> {
    await this.#client.close();
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
