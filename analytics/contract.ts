import type { Closeable } from "../edge/closeable.ts";
import type { TakenEvents } from "../edge/events/contract.ts";
import type { CountQuery, UsageCount } from "./counts.ts";
import type { LatencyQuery, LatencyRow } from "./latencies.ts";
import type { Bucket, ColumnType } from "./tables.ts";

/* Contract of the analytics stores, Postgres and ClickHouse. The contract suite test/contracts/analytics runs on both stores. */

/** Result of ingesting one batch of a workspace. */
export interface Ingested {
  /** Number of new events, without duplicates of stored events. */
  readonly stored: number;
  /** Number of events that were too late to be counted (`accepted-events.ts`). */
  readonly late: number;
  /** Number of events that are invalid or too far in the future. */
  readonly omitted: number;
}

/**
 * Restricts the rows that a query may read. The store applies the scope in a subquery below the caller's SELECT, because conditions of the
 * caller on the same level could undo it.
 */
export interface QueryScope {
  readonly workspaceId: string;
  /** Key spaces (verifications) or namespaces (rate limits) that the root key may read; `undefined` for all. */
  readonly within: readonly string[] | undefined;
  /** Time of the query in Unix ms. It is read once, and used for `now()` and every time bound. */
  readonly nowMs: number;
  readonly visibleFrom: VisibleFrom;
}

/**
 * Start of the visible range of each table, Unix ms. Events from this time on are visible, and so are buckets that end after it. All
 * verification tables have the same retention; each rate-limit table has its own.
 */
export type VisibleFrom = Readonly<Record<Bucket | "raw", number>>;

export interface QueryLimits {
  readonly rowsMax: number;
  readonly timeoutMs: number;
  readonly memoryBytesMax: number;
  /** Maximum size of the response JSON. */
  readonly answerBytesMax: number;
}

/** Query in the SQL dialect of a store, ready to run. */
export interface StoreQuery {
  readonly text: string;
  /** Parameter values in order. */
  readonly values: readonly unknown[];
  /** Result columns in order. */
  readonly columns: readonly ResultColumn[];
}

export interface ResultColumn {
  /**
   * Alias from the query, or the name that ClickHouse gives the expression. May contain any characters, even ones that are invalid in a
   * column name.
   */
  readonly name: string;
  readonly type: ResultType;
}

/** Result type: a column type, a type that only expressions have, or `Nullable(…)` of either. */
export type ResultType =
  | ColumnType
  | "UInt8"
  | "Int32"
  | "DateTime64(3)"
  | "Array(Int64)"
  | "Array(Float64)"
  | "Array(Bool)"
  | "Array(Date)"
  | "Array(DateTime)"
  | "Nothing";

export interface QueryResponse {
  /** JSON array of objects, returned to the caller unchanged. */
  readonly rowsJson: string;
  readonly rows: number;
  /** Execution time in the store, ms. */
  readonly tookMs: number;
}

/**
 * Rejection of a query by the store. `detail` concerns only the query. It contains no host, user, internal table or workspace id. With
 * reason `notConfigured`, an administrator must act, and `detail` says how.
 */
export class QueryRejected extends Error {
  override name = "QueryRefused";
  readonly reason: "rows" | "timeout" | "memory" | "query" | "unavailable" | "notConfigured";

  constructor(reason: QueryRejected["reason"], detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.reason = reason;
  }
}

/**
 * Maximum wait in the queue, and maximum number of queued queries per workspace. The latter exceeds the number of panels of a dashboard,
 * each of which sends a query.
 */
export const QUERY_WAITING = {
  waitersMax: 50,
  waitMsMax: 15_000,
  busy: "The server runs as many usage queries as it can at once, or as many of this workspace",
} as const;

/** Error for a store that is currently unavailable to all workspaces. */
export class AnalyticsUnavailable extends Error {
  override name = "AnalyticsUnavailable";
}

/**
 * Problems of a store, most severe first. `unavailable`: the store does not respond. `access_denied`: it rejects the credentials, or an
 * administrator must grant a permission. `disk_full`: its disk is full. `read_only`: it accepts no writes. `overloaded`: it rejects work,
 * for example because of too many parts or insufficient memory. `slow`: inserts take so long that events queue.
 */
export const STORE_PROBLEMS = ["unavailable", "access_denied", "disk_full", "read_only", "overloaded", "slow"] as const;
export type StoreProblem = (typeof STORE_PROBLEMS)[number];

export interface AnalyticsStore extends Closeable {
  readonly kind: "postgres" | "clickhouse";
  /** Batching hints of a store that prefers few, large batches. A batch is stored when it reaches this size or this age. */
  readonly portions?: { readonly bytesEnough: number; readonly ageMsEnough: number } | undefined;
  /**
   * Stores the events of a batch exactly once, even if the batch is delivered several times. Throws if the store fails for a reason other
   * than the events, for example because it is unreachable or too slow. The stream then delivers the batch again.
   */
  ingest(batch: TakenEvents, nowMs: number): Promise<Ingested>;
  /**
   * Updates the aggregated tables with ingested events. Returns whether more work is due immediately. With `patient`, waits for up to 30 s
   * under load, so that more events share a write.
   */
  rollUp(how?: { readonly patient?: boolean }): Promise<boolean>;
  /** Creates storage for upcoming days and deletes data past its retention. Returns whether more work is due soon. */
  maintain(nowMs: number): Promise<boolean>;
  /** @throws QueryRejected, PublicError 503 `server_busy`, or the abort reason of the signal. */
  query(query: StoreQuery, run: QueryRun): Promise<QueryResponse>;
  /** Returns up to `rowsMax` rows in the requested order. @throws QueryRejected with reason `timeout` or `unavailable`. */
  countVerifications(question: CountQuery): Promise<readonly UsageCount[]>;
  /** Returns rows ordered by time. @throws QueryRejected with reason `timeout` or `unavailable`. */
  countLatencies(question: LatencyQuery): Promise<readonly LatencyRow[]>;
  /**
   * Returns the age in ms of the workspace's oldest stored event that the aggregated tables do not contain yet; 0 if there is none.
   * @throws QueryRejected with reason `unavailable`.
   */
  uncountedForMs(workspaceId: string): Promise<number>;
  /**
   * Probes the store and returns the most severe problem of the probe and of recent operations. Never throws, and takes up to 2 s. The
   * Postgres store has no such method, because the database has its own health check.
   */
  findProblem?(): Promise<StoreProblem | undefined>;
}

export interface QueryRun {
  readonly scope: QueryScope;
  readonly limits: QueryLimits;
  /** Signal that cancels the query when the caller disconnects. */
  readonly signal?: AbortSignal | undefined;
}
