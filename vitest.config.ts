import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { importsBelow } from "./test/imports.ts";
import { pureTests } from "./test/pure-tests.ts";
import { SlowFirst } from "./test/slow-first.ts";

// Tests that need no real part run without the set-up of the harness and share their processes, so that a file alone takes a second.
const PURE = pureTests(
  importsBelow(["api-server", "cli", "core", "dashboard", "edge", "operator", "scripts", "sidecar", "test"]),
);

// Most of a process's first second is compiling: whatever a run starts finds what an earlier process of it has compiled.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, ".postern", "compiled");

// These start whole processes of ours and measure time, so they come last and one file at a time: two of them side by side would
// measure one another.
const TIMED = [
  "edge/redis/script-cost.test.ts",
  "test/faults/centre-away.test.ts",
  "test/faults/gate-memory.test.ts",
  "test/faults/hanging-redis.test.ts",
  "test/faults/idle.test.ts",
  "test/faults/late-calls.test.ts",
  "test/faults/leader-stands-still.test.ts",
  "test/faults/log-storm.test.ts",
  "test/faults/propagation-of-changes.test.ts",
  "test/faults/propagation.test.ts",
  "test/faults/rolling-restart.test.ts",
  "test/faults/shutdown.test.ts",
  "test/faults/snapshot.test.ts",
  "test/faults/verify-latency.test.ts",
  "test/fuzz/gate/**/*.test.ts",
  "test/outages/**/*.test.ts",
  "test/torture/torture.test.ts",
];
// These start whole processes too, but wait for conditions alone, on parts of their own.
const WHOLE = [
  "test/dashboard/**/*.test.ts",
  "test/docs/**/*.test.ts",
  "test/e2e/**/*.test.ts",
  "test/examples/**/*.test.ts",
  "test/faults/**/*.test.ts",
  "test/package/**/*.test.ts",
];
// The last needs a whole cluster: `make e2e`.
const NEVER = ["**/node_modules/**", "**/dist/**", "test/cluster/**"];

// Shared parts (Postgres, Redis, a Kubernetes API) start on the first request, in the process that runs this.
const REAL = { globalSetup: "test/harness/global-setup.ts", pool: "forks" } as const;
const LONG = { testTimeout: 180_000, hookTimeout: 180_000 };

export default defineConfig({
  test: {
    // A part that is not available fails the tests that need it, unless ALLOW_SKIP=1 accepts less than a full run.
    ...(process.env.ALLOW_SKIP === "1" ? { runner: "./test/harness/skipping-runner.ts" } : {}),
    // A shared machine stands still for seconds now and then, which fails a test of time. In the run that decides, such a test
    // has a second try; what fails twice fails the run.
    retry: process.env.CI === "true" ? 1 : 0,
    maxWorkers: 2,
    sequence: { sequencer: SlowFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: PURE,
          pool: "threads",
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          ...REAL,
          name: "api-server",
          include: ["api-server/**/*.test.ts"],
          exclude: [...NEVER, ...PURE],
          // Loading the server takes longer than most of its files. Each has its own database and closes what it opens.
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          ...REAL,
          name: "parts",
          include: ["**/*.test.ts"],
          exclude: [...NEVER, "api-server/**", ...TIMED, ...WHOLE, ...PURE],
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          ...REAL,
          ...LONG,
          name: "whole",
          include: WHOLE,
          exclude: [...NEVER, ...TIMED, ...PURE],
          // Most of their time passes in waiting.
          maxWorkers: 4,
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        test: {
          ...REAL,
          ...LONG,
          name: "timed",
          include: TIMED,
          exclude: [...NEVER, ...PURE],
          fileParallelism: false,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
