import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Returns the memory of this process that is not garbage. The resident memory also depends on what ran before in the process. */
export function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
