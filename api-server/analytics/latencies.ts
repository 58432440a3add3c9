/*
 * How long verifications took: the events say it, the counts do not, and the tables that callers query have no such column. Each answer reads raw
 * events, so it is asked for a bounded part of time.
 */

export interface LatencyQuery {
  readonly workspaceId: string;
  /** Key spaces that the caller may see; undefined for all. */
  readonly within: readonly string[] | undefined;
  readonly keySpaceId: string | undefined;
  readonly keyId: string | undefined;
  readonly externalId: string | undefined;
  /** Unix ms. */
  readonly fromMs: number;
  /** The same, exclusive. */
  readonly toMs: number;
  /** A row for each of these, aligned to 1970. */
  readonly stepMs: number;
  readonly timeoutMs: number;
}

/** A step that had events; latencies in ms, interpolated between the two nearest events. */
export interface LatencyRow {
  /** Unix ms, the start of the step. */
  readonly timeMs: number;
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}
