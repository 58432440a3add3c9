import { getHeapStatistics } from "node:v8";
import type { ProjectionLimits } from "../edge/projection/projection.ts";

const MIB = 1024 * 1024;
/** What a gate's heap has in it before the first key: code, libraries, its policy. Measured. */
const BASE_BYTES = 22 * MIB;
/** The rest is for requests, counters and events, and for what V8 has not collected yet. */
const SHARE = 0.25;
/** With more, requests and garbage would soon find the heap full. */
const SHARE_MAX = 0.5;
const ABSENCE_BYTES = 250;
const ABSENCES_SHARE = 0.1;
/** A key with its identity, and a part of the roles, APIs and overrides that keys share. */
const RECORDS_PER_KEY = 2.5;
/** The policy in force and what it refers to are among the records. */
const RECORDS_MIN = 1_000;

/** What is said of the cache; what is left out follows from the heap. */
export interface CacheSize {
  readonly keys?: number | undefined;
  /** Of memory, with what is derived from records. */
  readonly bytes?: number | undefined;
}

/**
 * How much a gate caches, by the largest heap that V8 may have (`--max-old-space-size`). Keys that do not fit are read from Redis again:
 * slower, but a heap that is full ends the process. A gate with a heap as V8 chooses it on a large machine caches what it ever did.
 */
export function cacheLimits({ keys, bytes }: CacheSize = {}, heapBytes = heapLimit()): ProjectionLimits {
  const spare = spareBytes(heapBytes);
  return {
    bytes: bytes ?? spare * SHARE,
    absences: Math.min(20_000, Math.round((spare * ABSENCES_SHARE) / ABSENCE_BYTES)),
    ...(keys === undefined ? {} : { views: keys, records: Math.max(RECORDS_MIN, Math.round(keys * RECORDS_PER_KEY)) }),
  };
}

/** The most that may be asked for. */
export const cacheBytesMax = (heapBytes = heapLimit()): number => Math.floor(spareBytes(heapBytes) * SHARE_MAX);

const heapLimit = (): number => getHeapStatistics().heap_size_limit;

const spareBytes = (heapBytes: number): number => Math.max(4 * MIB, heapBytes - BASE_BYTES);
