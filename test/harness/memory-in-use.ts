import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Returns the memory of this process after garbage is collected. `rss` is of no use: it also depends on what ran before in the process.
 */
export function memoryInUse(): NodeJS.MemoryUsage {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage();
}

/** Returns the bytes on and outside of the heap that are not garbage. */
export function heldBytes(): number {
  const { heapUsed, external } = memoryInUse();
  return heapUsed + external;
}
