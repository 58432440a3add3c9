import { expect, test } from "vitest";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { applyManyObjects, POD_MEMORY_BYTES } from "../load/operator/many-objects.ts";

/* Short; `npm run bench:operator` does it with more objects, and in a measured time. */

test(
  "operator with its pod memory handles many objects over few connections",
  async () => {
    const figures = await applyManyObjects({ good: 150, bad: 8, memoryBytes: POD_MEMORY_BYTES, deadlineMs: 120_000 });
    expect(figures.connections).toBeLessThanOrEqual(10);
  },
  KUBERNETES_START_MS,
);
