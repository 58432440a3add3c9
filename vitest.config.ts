import { defineConfig } from "vitest/config";
import { importsBelow } from "./test/imports.ts";
import { pureTests } from "./test/pure-tests.ts";

// Tests that need no real part run without the set-up of the harness and share their processes, so that a file alone takes a second.
const PURE = pureTests(importsBelow(["api-server", "cli", "core", "edge", "operator", "scripts", "sidecar", "test"]));

// Tests that start whole processes of ours, kill parts or follow the documentation come last and one file at a time:
// they measure time, and two of them side by side would measure one another.
const WHOLE = [
  "test/e2e/**/*.test.ts",
  "test/faults/**/*.test.ts",
  "test/torture/torture.test.ts",
  "test/docs/**/*.test.ts",
  "test/fuzz/gate/**/*.test.ts",
];
const NEVER = ["**/node_modules/**", "**/dist/**"];

// Shared parts (Postgres, Redis, a Kubernetes API) start on the first request, in the process that runs this.
const REAL = { globalSetup: "test/harness/global-setup.ts", pool: "forks" } as const;

export default defineConfig({
  test: {
    // A part that is not available fails the tests that need it, unless ALLOW_SKIP=1 accepts less than a full run.
    ...(process.env.ALLOW_SKIP === "1" ? { runner: "./test/harness/skipping-runner.ts" } : {}),
    // A shared machine stands still for seconds now and then, which fails a test of time. In the run that decides, such a test
    // has a second try; what fails twice fails the run.
    retry: process.env.CI === "true" ? 1 : 0,
    maxWorkers: 2,
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
          name: "parts",
          include: ["**/*.test.ts"],
          exclude: [...NEVER, ...WHOLE, ...PURE],
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          ...REAL,
          name: "whole",
          include: WHOLE,
          exclude: [...NEVER, ...PURE],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
