import { join } from "node:path";
import { defineConfig } from "vitest/config";

// `make e2e`. Its files share one cluster, so they run one after another; what follows a failure says nothing.
export default defineConfig({
  test: {
    root: join(import.meta.dirname, "../.."),
    include: ["test/cluster/**/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    bail: 1,
    // Helm waits for eight minutes, and an upgrade is three of its runs.
    testTimeout: 1_500_000,
    hookTimeout: 600_000,
  },
});
