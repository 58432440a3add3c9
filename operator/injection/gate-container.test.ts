import { expect, test } from "vitest";
import { DEFAULT_RESOURCES } from "./config.ts";
import { nodeOptionsFor } from "./gate-container.ts";

test.each([
  { limit: DEFAULT_RESOURCES.memoryLimit, heapMib: 80, semiSpaceMib: 4 },
  { limit: "1Gi", heapMib: 256, semiSpaceMib: 4 },
  { limit: "512M", heapMib: 122, semiSpaceMib: 4 },
  { limit: "64Mi", heapMib: 40, semiSpaceMib: 2 },
])("gate with memory limit $limit has a heap of $heapMib MiB", ({ limit, heapMib, semiSpaceMib }) => {
  expect(nodeOptionsFor(limit)).toBe(`--max-old-space-size=${heapMib} --max-semi-space-size=${semiSpaceMib}`);
});
