import type { Closeable } from "../../edge/closeable.ts";
import type { TakenEvents } from "../../edge/events/contract.ts";
import type { CountQuery, UsageCount } from "./counts.ts";
import type { LatencyQuery, LatencyRow } from "./latencies.ts";
import type { Bucket, ColumnType } from "./tables.ts";

/*
 * What usage events are kept in and asked from. There are two such stores, Postgres and ClickHouse; one contract suite
 * (test/contracts/analytics) runs on both.
 */

/** What a store makes of one workspace's portion of the event stream. */
export interface Ingested {
  /** Events that were new; those that were stored before are not among them. */
  readonly stored: number;
  /** Events that came too late to be counted (`accepted-times.ts`). */
  readonly late: number;
  /** Events that cannot be stored: not valid, or of a time that lies ahead. */
  readonly omitted: number;
}

/** Whose rows a query sees. The store adds these bounds below the caller's SELECT, never beside its conditions. */
export interface QueryScope {
  readonly workspaceId: string;
  /** Key spaces for verifications, or namespaces for rate limits, that the root key may read; undefined for all. */
  readonly within: readonly string[] | undefined;
  /** Unix ms, read once for a query: `now()` and every bound of time. */
  readonly nowMs: number;
  readonly visibleFrom: VisibleFrom;
}

/**
 * Unix ms, for the table of raw events and that of each bucket: events from then on, and buckets of which a part lies from then on, are visible. The
 * tables of verifications have one retention; those of rate limits have one each.
 */
export type VisibleFrom = Readonly<Record<Bucket | "raw", number>>;

export interface QueryLimits {
  readonly rowsMax: number;
  readonly timeoutMs: number;
  readonly memoryBytesMax: number;
  /** Of the JSON of all rows. */
  readonly answerBytesMax: number;
}

/** A query that a store can run: what the dialect has made of the caller's text for this store. */
export interface StoreQuery {
  readonly text: string;
  /** Bound to the parameters of the text in order. */
  readonly values: readonly unknown[];
  /** The columns of a row, in order. */
  readonly columns: readonly ResultColumn[];
}

export interface ResultColumn {
  /** As the caller's alias says, or as ClickHouse names the expression. Any text: also one that no store allows as a name. */
  readonly name: string;
  readonly type: ResultType;
}

/** A column's type, those that only expressions have, and `Nullable(…)`: any of them may be null. */
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
  /** A JSON array of objects, exactly as the answer to the caller has it. */
  readonly rowsJson: string;
  readonly rows: number;
  /** How long the store worked on it. */
  readonly tookMs: number;
}

/**
 * Why a store did not answer a query. `detail` concerns the query alone: no host, user, table of the store or workspace id. `notConfigured`: the
 * store lacks what only its administrator can give, which `detail` names.
 */
export class QueryRejected extends Error {
  override name = "QueryRefused";
  readonly reason: "rows" | "timeout" | "memory" | "query" | "unavailable" | "notConfigured";

  constructor(reason: QueryRejected["reason"], detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.reason = reason;
  }
}

/** How long a query waits for others to end, and how many of a workspace do: more than the panels of a dashboard. */
export const QUERY_WAITING = {
  waitersMax: 50,
  waitMsMax: 15_000,
  busy: "The server runs as many usage queries as it can at once, or as many of this workspace",
} as const;

/** The store cannot be used at the moment, by no workspace. */
export class AnalyticsUnavailable extends Error {
  override name = "AnalyticsUnavailable";
}

/**
 * What keeps a store from being used although everything else works, the worst first:
 * `away`: it does not answer. `refuses`: it does not let us in, or lacks what an administrator has to give. `full`: its disk is.
 * `read-only`: it takes no writes. `overloaded`: it refuses work, for example because of too many parts, or for want of memory. `slow`: it
 * takes so long that events wait.
 */
export const STORE_PROBLEMS = ["unavailable", "access_denied", "disk_full", "read_only", "overloaded", "slow"] as const;
export type StoreProblem = (typeof STORE_PROBLEMS)[number];

export interface AnalyticsStore extends Closeable {
  readonly kind: "postgres" | "clickhouse";
  /** A store that wants few large portions rather than many small ones: what is worth a portion by its size, or by its age. */
  readonly portions?: { readonly bytesEnough: number; readonly ageMsEnough: number } | undefined;
  /**
   * Stores the events of a portion, each exactly once however often it is delivered. Throws when the events are not the
   * cause of a failure: the store is unreachable, or too slow. The portion is then delivered again.
   */
  ingest(batch: TakenEvents, nowMs: number): Promise<Ingested>;
  /**
   * Brings the aggregated tables up to date with what was ingested. Returns whether there is more to do at once. With `patient`, waits
   * under load until more events can share a write, up to half a minute.
   */
  rollUp(how?: { readonly patient?: boolean }): Promise<boolean>;
  /** Makes room for the days to come and drops what is beyond the retention. Returns whether there is more to do soon. */
  maintain(nowMs: number): Promise<boolean>;
  /** @throws QueryRejected, PublicError 503 `server_busy`, and the signal's reason when it is aborted. */
  query(query: StoreQuery, run: QueryRun): Promise<QueryResponse>;
  /** Rows in the order of the question, at most `rowsMax` of them. @throws QueryRejected, for no other reason than `timeout` and `unavailable`. */
  countVerifications(question: CountQuery): Promise<readonly UsageCount[]>;
  /** By time. @throws QueryRejected, for no other reason than `timeout` and `unavailable`. */
  countLatencies(question: LatencyQuery): Promise<readonly LatencyRow[]>;
  /**
   * For how many ms the oldest event of the workspace that is stored has not been in the aggregated tables; 0 when all are. @throws QueryRejected, for no
   * other reason than `unavailable`.
   */
  uncountedForMs(workspaceId: string): Promise<number>;
  /**
   * Asks the store whether it can be used, and returns the worst of that and of what its last answers were. Never throws, and waits two
   * seconds at most. Left out where another watch sees it: that of Postgres.
   */
  trouble?(): Promise<StoreProblem | undefined>;
}

export interface QueryRun {
  readonly scope: QueryScope;
  readonly limits: QueryLimits;
  /** Aborted when the caller has gone: the query is then given up. */
  readonly signal?: AbortSignal | undefined;
}
