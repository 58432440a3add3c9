import { getHeapStatistics } from "node:v8";
import type { ProjectionLimits } from "../edge/projection/projection.ts";

const MIB = 1024 * 1024;
/** Measured heap of a gate before the first key is cached: code, libraries, its policy. */
const BASE_BYTES = 22 * MIB;
/** Share of the remaining heap for the cache. The rest is for requests, counters, events, and garbage that V8 has not collected yet. */
const SHARE = 0.25;
/** With more, requests and garbage would soon exhaust the heap. */
const SHARE_MAX = 0.5;
const NEGATIVE_ENTRY_BYTES = 250;
const ABSENCES_SHARE = 0.1;
/** Records per key: the key with its identity, and a share of the roles, APIs and overrides that keys have in common. */
const RECORDS_PER_KEY = 2.5;
/** Includes the active policy and the records that it refers to. */
const RECORDS_MIN = 1_000;

/** Configured size of the cache. Default: derived from the heap. */
export interface CacheSize {
  readonly keys?: number | undefined;
  /** Memory, including data derived from records. */
  readonly bytes?: number | undefined;
}

/**
 * Returns how much a gate caches, by the largest heap that V8 may use (`--max-old-space-size`). Keys that do not fit are read from Redis
 * again, which is slower, but an exhausted heap ends the process.
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
