import { parseQuantity } from "./quantity.ts";

const MIB = 1024 * 1024;
/** A gate uses about 20 MiB of heap before it caches the first key. */
const HEAP_MIB_MIN = 40;
const HEAP_SHARE = 0.25;

/**
 * Returns the Node options of a gate with this memory limit. By default, V8 sizes its heap by the machine and collects late, so the kernel
 * would kill the process. Most of a gate's memory is outside the heap: about 40 MiB for the process, 0.25 MiB per large body in flight, and
 * up to 64 MiB of completed bodies that V8 has not collected yet. The cache limits depend on the heap (sidecar/cache-limits.ts).
 */
export function nodeOptionsFor(memoryLimit: string): string {
  const heapMib = Math.max(HEAP_MIB_MIN, Math.floor((HEAP_SHARE * (parseQuantity(memoryLimit) ?? 0)) / MIB));
  return `--max-old-space-size=${heapMib} --max-semi-space-size=1`;
}
