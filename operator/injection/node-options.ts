import { parseQuantity } from "./quantity.ts";

const MIB = 1024 * 1024;
/** A gate has some 20 MiB in its heap before the first key. */
const HEAP_MIB_MIN = 40;
const HEAP_SHARE = 0.25;

/**
 * The settings of Node for a gate with this memory limit. V8 chooses its heap by the machine and collects late, so that it would be killed.
 * Most of a gate's memory is not heap: some 40 MiB are the process itself, a quarter of a megabyte each large body under way, and up to
 * 64 MiB are bodies that are over and that V8 has not collected yet. What the gate caches follows from its heap (sidecar/cache-limits.ts).
 */
export function nodeOptionsFor(memoryLimit: string): string {
  const heapMib = Math.max(HEAP_MIB_MIN, Math.floor((HEAP_SHARE * (parseQuantity(memoryLimit) ?? 0)) / MIB));
  return `--max-old-space-size=${heapMib} --max-semi-space-size=1`;
}
