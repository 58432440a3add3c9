/*
 * Verification latencies. Only raw events contain them: the count tables and the public tables have no such column. Because a request reads
 * raw events, its time range is limited.
 */

export interface LatencyQuery {
  readonly workspaceId: string;
  /** Key spaces that the caller may read; `undefined` for all. */
  readonly within: readonly string[] | undefined;
  readonly keySpaceId: string | undefined;
  readonly keyId: string | undefined;
  readonly externalId: string | undefined;
  /** Unix ms. */
  readonly fromMs: number;
  /** Exclusive end in Unix ms. */
  readonly toMs: number;
  /** Step width. The result has one row per step, aligned to the Unix epoch. */
  readonly stepMs: number;
  readonly timeoutMs: number;
}

/** Step that has events; latencies in ms, interpolated between the two nearest events. */
export interface LatencyRow {
  /** Start of the step in Unix ms. */
  readonly timeMs: number;
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}
