import { defineConfig } from "vitest/config";

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

export default defineConfig({
  test: {
    // Shared parts (Postgres, Redis, a Kubernetes API) start on the first request, in the process that runs this.
    globalSetup: "test/harness/global-setup.ts",
    // A part that cannot be had fails the tests that need it; whoever accepts less than a full run says so.
    ...(process.env.ALLOW_SKIP === "1" ? { runner: "./test/harness/skipping-runner.ts" } : {}),
    // A shared machine stands still for seconds now and then, which fails a test of time. In the run that decides, such a test
    // has a second try; what fails twice fails the run.
    retry: process.env.CI === "true" ? 1 : 0,
    pool: "forks",
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: "parts",
          include: ["**/*.test.ts"],
          exclude: [...NEVER, ...WHOLE],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "whole",
          include: WHOLE,
          exclude: NEVER,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
