import { expect, test } from "vitest";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { applyManyObjects, POD_MEMORY_BYTES } from "../load/operator/many-objects.ts";

/* Short; `npm run bench:operator` does it with more objects, and in a measured time. */

test(
  "an operator with the memory of its pod makes many objects Ready, over a few connections, and the bad ones stop no other",
  async () => {
    const figures = await applyManyObjects({ good: 150, bad: 8, memoryBytes: POD_MEMORY_BYTES, deadlineMs: 120_000 });
    expect(figures.connections).toBeLessThanOrEqual(10);
  },
  KUBERNETES_START_MS,
);
