import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/longest-first.ts";
import { type Project, selectTests } from "./test/selection.ts";

const files = selectTests();

// Most of a process's first second is compiling: whatever a run starts finds what an earlier process of it has compiled.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, ".postern", "compiled");

/** A project of files that share Postgres, Redis and a Kubernetes API, which start on the first request in the process that runs this. */
const onRealParts = (name: Project, options: object = {}) => ({
  extends: true as const,
  test: {
    name,
    include: files[name],
    globalSetup: "test/harness/global-setup.ts",
    pool: "forks" as const,
    // Projects with the same order run side by side.
    sequence: { groupOrder: 1 },
    ...options,
  },
});
/** For tests that start whole processes. */
const LONG = { testTimeout: 180_000, hookTimeout: 180_000 };

export default defineConfig({
  test: {
    // A part that is not available fails the tests that need it, unless ALLOW_SKIP=1 accepts less than a full run.
    ...(process.env.ALLOW_SKIP === "1" ? { runner: "./test/harness/skipping-runner.ts" } : {}),
    // A shared machine may stop for seconds, which fails a test of time. In CI such a test has a second attempt.
    retry: process.env.CI === "true" ? 1 : 0,
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        // Without the set-up of the harness and in shared threads: a file takes a second alone.
        test: {
          name: "pure",
          include: files.pure,
          pool: "threads",
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      // Loading the server takes longer than most of its files. Each has its own database and closes what it opens.
      onRealParts("api-server", { isolate: false }),
      onRealParts("components"),
      onRealParts("kubernetes", LONG),
      // The files of a worker share a browser; each has a server and a database of its own.
      onRealParts("dashboard", { ...LONG, isolate: false, maxWorkers: 4, sequence: { groupOrder: 2 } }),
      // They wait more than they compute.
      onRealParts("system", { ...LONG, maxWorkers: 4, sequence: { groupOrder: 2 } }),
      onRealParts("timed", { ...LONG, maxWorkers: 1, fileParallelism: false, sequence: { groupOrder: 3 } }),
    ],
  },
});
