import { getHeapStatistics } from "node:v8";
import type { ProjectionLimits } from "../edge/projection/projection.ts";

const MIB = 1024 * 1024;
/** What a gate's heap has in it before the first key: code, libraries, its policy. Measured. */
const BASE_BYTES = 22 * MIB;
/** The rest is for requests, counters and events, and for what V8 has not collected yet. */
const SHARE = 0.25;
const ABSENCE_BYTES = 250;
const ABSENCES_SHARE = 0.1;

/**
 * How much a gate caches, by the largest heap that V8 may have (`--max-old-space-size`). Keys that do not fit are read from Redis again:
 * slower, but a heap that is full ends the process. A gate with a heap as V8 chooses it on a large machine caches what it ever did.
 */
export function cacheLimits(heapBytes = getHeapStatistics().heap_size_limit): ProjectionLimits {
  const spare = Math.max(4 * MIB, heapBytes - BASE_BYTES);
  return { bytes: spare * SHARE, absences: Math.min(20_000, Math.round((spare * ABSENCES_SHARE) / ABSENCE_BYTES)) };
}
