import { getHeapStatistics } from "node:v8";
import type { ProjectionLimits } from "../edge/projection/projection.ts";

const MIB = 1024 * 1024;
/** Measured heap use of a gate with an empty cache: code, libraries and the policy. */
const BASE_BYTES = 22 * MIB;
/** Share of the spare heap that the cache may use. Requests, counters, events and uncollected garbage use the rest. */
const SHARE = 0.25;
/** Maximum share of the spare heap that can be configured. A larger cache would leave too little memory for requests and garbage. */
const SHARE_MAX = 0.5;
const NEGATIVE_ENTRY_BYTES = 250;
const ABSENCES_SHARE = 0.1;
/** Number of records per cached key: the key, its identity, and its share of the roles, APIs and overrides that keys have in common. */
const RECORDS_PER_KEY = 2.5;
/** Minimum number of records, enough for the active policy and its namespaces. */
const RECORDS_MIN = 1_000;

/** Configured cache size. Default: derived from the heap. */
export interface CacheSize {
  readonly keys?: number | undefined;
  /** Maximum memory of the cache, including data derived from records. */
  readonly bytes?: number | undefined;
}

/**
 * Returns the limits of a gate's cache. The defaults are derived from V8's maximum heap (`--max-old-space-size`). The gate reads keys
 * beyond the limits from Redis each time: this is slower, but an exhausted heap would end the process.
 */
export function cacheLimits({ keys, bytes }: CacheSize = {}, heapBytes = heapLimit()): ProjectionLimits {
  const spare = spareBytes(heapBytes);
  return {
    bytes: bytes ?? spare * SHARE,
    absences: Math.min(20_000, Math.round((spare * ABSENCES_SHARE) / NEGATIVE_ENTRY_BYTES)),
    ...(keys === undefined ? {} : { views: keys, records: Math.max(RECORDS_MIN, Math.round(keys * RECORDS_PER_KEY)) }),
  };
}

/** Returns the maximum configurable cache size, in bytes. */
export const cacheBytesMax = (heapBytes = heapLimit()): number => Math.floor(spareBytes(heapBytes) * SHARE_MAX);

const heapLimit = (): number => getHeapStatistics().heap_size_limit;

const spareBytes = (heapBytes: number): number => Math.max(4 * MIB, heapBytes - BASE_BYTES);
