import { expect, test } from "vitest";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { applyManyObjects, POD_MEMORY_BYTES } from "../load/operator/many-objects.ts";

/* A short run; `npm run bench:operator` measures more objects. */

test(
  "operator with its pod memory handles many objects over few connections",
  async () => {
    const figures = await applyManyObjects({ good: 150, bad: 8, memoryBytes: POD_MEMORY_BYTES, deadlineMs: 120_000 });
    expect(figures.connections).toBeLessThanOrEqual(10);
  },
  KUBERNETES_START_MS,
);
