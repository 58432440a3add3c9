import { expect, test } from "vitest";
import { DEFAULT_RESOURCES } from "./config.ts";
import { nodeOptionsFor } from "./gate-container.ts";

test.each([
  { limit: DEFAULT_RESOURCES.memoryLimit, heapMib: 80 },
  { limit: "1Gi", heapMib: 256 },
  { limit: "512M", heapMib: 122 },
  { limit: "64Mi", heapMib: 40 },
])("gate with memory limit $limit has a heap of $heapMib MiB", ({ limit, heapMib }) => {
  expect(nodeOptionsFor(limit)).toBe(`--max-old-space-size=${heapMib} --max-semi-space-size=1`);
});
