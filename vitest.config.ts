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

// Tests that start whole processes of ours, kill parts or follow the documentation come last and one file at a time:
// they measure time, and two of them side by side would measure one another.
const TIMED = [
  "test/e2e/**/*.test.ts",
  "test/faults/**/*.test.ts",
  "test/outages/**/*.test.ts",
  "test/torture/torture.test.ts",
  "test/docs/**/*.test.ts",
  "test/fuzz/gate/**/*.test.ts",
];
// These start whole processes too, but wait for conditions alone, on parts of their own.
const WHOLE = [
  "test/dashboard/**/*.test.ts",
  "test/docs/administration.test.ts",
  "test/docs/commands.test.ts",
  "test/docs/first-policy.test.ts",
  "test/docs/guides/*.test.ts",
  "test/docs/recipes.test.ts",
  "test/e2e/administration.test.ts",
  "test/e2e/api-key-kubernetes.test.ts",
  "test/e2e/api-key.test.ts",
  "test/e2e/dev-stores.test.ts",
  "test/e2e/dev.test.ts",
  "test/e2e/gate-workspaces.test.ts",
  "test/e2e/operator-at-rest.test.ts",
  "test/e2e/operator-classes.test.ts",
  "test/e2e/operator-cost.test.ts",
  "test/e2e/operator-killed-at-each-step.test.ts",
  "test/e2e/operator-killed.test.ts",
  "test/e2e/operator-kubernetes.test.ts",
  "test/e2e/operator-many-objects.test.ts",
  "test/e2e/operator-network.test.ts",
  "test/e2e/operator-orphans.test.ts",
  "test/e2e/operator-pods.test.ts",
  "test/e2e/operator-references.test.ts",
  "test/e2e/operator-releases.test.ts",
  "test/e2e/operator-restored.test.ts",
  "test/e2e/operator-rights.test.ts",
  "test/e2e/operator-root-key.test.ts",
  "test/e2e/operator-server-side-apply.test.ts",
  "test/e2e/operator-skew.test.ts",
  "test/e2e/operator-tenants.test.ts",
  "test/e2e/operator-workspaces.test.ts",
  "test/e2e/operator.test.ts",
  "test/e2e/policy-by-name.test.ts",
  "test/e2e/policy-conditions.test.ts",
  "test/e2e/webhook.test.ts",
  "test/examples/*.test.ts",
  "test/faults/api-listeners.test.ts",
  "test/faults/away-at-start.test.ts",
  "test/faults/backup.test.ts",
  "test/faults/bulk-change.test.ts",
  "test/faults/clickhouse-troubles.test.ts",
  "test/faults/credits.test.ts",
  "test/faults/database-certificates.test.ts",
  "test/faults/database-users.test.ts",
  "test/faults/events-redis.test.ts",
  "test/faults/in-flight.test.ts",
  "test/faults/ingest-process.test.ts",
  "test/faults/key-hash-races.test.ts",
  "test/faults/kill-nine.test.ts",
  "test/faults/killed-parent.test.ts",
  "test/faults/many-at-once.test.ts",
  "test/faults/migrated-keys.test.ts",
  "test/faults/missed-before-loss.test.ts",
  "test/faults/queued-keys.test.ts",
  "test/faults/reader-returns-late.test.ts",
  "test/faults/redis-acl.test.ts",
  "test/faults/redis-goes-back.test.ts",
  "test/faults/refill-spending.test.ts",
  "test/faults/replicas.test.ts",
  "test/faults/restored.test.ts",
  "test/faults/rotated-secrets.test.ts",
  "test/faults/secrets.test.ts",
  "test/faults/store-lost.test.ts",
  "test/faults/stray-errors.test.ts",
  "test/faults/usage-seen.test.ts",
  "test/package/package.test.ts",
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
          exclude: [...NEVER, ...PURE],
          // One more than elsewhere: most of their time passes in waiting.
          maxWorkers: 3,
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
          exclude: [...NEVER, ...WHOLE, ...PURE],
          fileParallelism: false,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
