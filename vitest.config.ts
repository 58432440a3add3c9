import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/longest-first.ts";
import { type Project, selectTests } from "./test/selection.ts";

const files = selectTests();

// Compiling takes most of a process's first second, so all processes of a run share a compile cache.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, ".postern", "compiled");

/**
 * A project with tests that share Postgres, Redis and a Kubernetes API. The process that loads this file starts each of them when a test
 * first requests it.
 */
const onRealParts = (name: Project, options: object = {}) => ({
  extends: true as const,
  test: {
    name,
    include: files[name],
    globalSetup: "test/harness/global-setup.ts",
    pool: "forks" as const,
    // Projects with the same `groupOrder` run concurrently.
    sequence: { groupOrder: 1 },
    ...options,
  },
});
/** Timeouts of tests that start whole processes. */
const LONG = { testTimeout: 180_000, hookTimeout: 180_000 };

export default defineConfig({
  test: {
    // A test fails if a program that it needs is unavailable. With ALLOW_SKIP=1 the test is skipped instead.
    ...(process.env.ALLOW_SKIP === "1" ? { runner: "./test/harness/skipping-runner.ts" } : {}),
    // Keeps transformed modules between runs, which halves the time of a run of few files.
    fsModuleCache: true,
    fsModuleCachePath: join(import.meta.dirname, ".postern", "modules"),
    // A shared machine may pause for seconds, so a test that measures time can fail without a defect. In CI, a failed test is therefore
    // retried once.
    retry: process.env.CI === "true" ? 1 : 0,
    // More workers than a small machine has cores, because many tests wait for other processes.
    maxWorkers: 6,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The default of one second is too short on a machine that other processes load.
    expect: { poll: { timeout: 10_000 } },
    projects: [
      {
        extends: true,
        // Pure tests skip the global setup and share their threads, because a file in a worker of its own would take a second.
        test: {
          name: "pure",
          include: files.pure,
          pool: "threads",
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      // The test files of a worker share the loaded modules, because loading them takes longer than most files. Each file has its own
      // database and closes what it opens.
      onRealParts("api-server", { isolate: false }),
      onRealParts("components", { isolate: false }),
      onRealParts("kubernetes", LONG),
      // The test files of a worker share a browser. Each file has its own server and database.
      onRealParts("dashboard", { ...LONG, isolate: false }),
      onRealParts("system", { ...LONG, isolate: false }),
      onRealParts("timed", { ...LONG, maxWorkers: 4, sequence: { groupOrder: 2 } }),
    ],
  },
});
