import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { type Import, importedFile, importsBelow } from "./imports.ts";

/*
 * Assigns each test file to one project of vitest.config.ts, by what the file imports, directly or not. `make test` runs `pure`, `api-server`
 * and `components`, and `kubernetes` where a Kubernetes API starts without a build; `make test-all` runs all.
 */

/** Libraries that only compute: they open no connection and start no process. */
const PURE_LIBRARIES = new Set([
  "ajv",
  "ajv/dist/2020.js",
  "fast-check",
  "ipaddr.js",
  "node:assert",
  "node:buffer",
  "node:crypto",
  "node:events",
  "node:fs",
  "node:fs/promises",
  "node:os",
  "node:path",
  "node:perf_hooks",
  "node:stream",
  "node:timers/promises",
  "node:url",
  "node:util",
  "vitest",
  "yaml",
  "zod",
]);

/** Modules that build a program, install packages of npm or PyPI, or start a browser, a gateway or a second database. */
const INSTALLERS = [
  "test/harness/chromium.ts",
  "test/harness/clickhouse.ts",
  "test/harness/parts/gateways.ts",
  "test/harness/parts/go-program.ts",
  "test/harness/parts/helm.ts",
  "test/harness/parts/npm-packages.ts",
  "test/harness/parts/postgres-programs.ts",
  "test/harness/parts/schemathesis.ts",
  "test/harness/parts/traefik.ts",
  "test/harness/parts/valkey.ts",
];

const KUBERNETES = "test/harness/kubernetes.ts";

/** Files that start whole processes and measure time. They run after all others, four at a time, because they mostly wait. */
export const TIMED = [
  "edge/redis/script-cost.test.ts",
  "test/faults/control-plane-unavailable.test.ts",
  "test/faults/propagation-of-changes.test.ts",
  "test/faults/propagation.test.ts",
  "test/faults/rolling-restart.test.ts",
  "test/faults/snapshot.test.ts",
  "test/faults/verify-latency.test.ts",
  "test/outages/outages.test.ts",
  "test/torture/torture.test.ts",
];

/** Folders of tests that start whole processes. */
const SYSTEM = ["docs", "e2e", "examples", "faults", "fuzz/gate", "outages", "package", "torture"].map(
  (name) => `test/${name}/`,
);

/** End-to-end tests of `make test`: one for each kind of resource. */
export const SMOKE = ["test/e2e/dev.test.ts", "test/e2e/operator-directory.test.ts", "test/e2e/api-key.test.ts"];

export type Project = "pure" | "api-server" | "components" | "kubernetes" | "dashboard" | "system" | "timed";

/** Returns the project of each test file of the checkout. */
export function selectTests(): Record<Project, string[]> {
  const root = resolve(import.meta.dirname, "..");
  const folders = readdirSync(root, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "node_modules",
  );
  return selectFrom(importsBelow(folders.map(({ name }) => name)));
}

export function selectFrom(files: ReadonlyMap<string, readonly Import[]>): Record<Project, string[]> {
  const projects: Record<Project, string[]> = {
    pure: [],
    "api-server": [],
    components: [],
    kubernetes: [],
    dashboard: [],
    system: [],
    timed: [],
  };
  const impure = findImpure(files);
  const installing = withImporters(files, INSTALLERS);
  const kubernetes = withImporters(files, [KUBERNETES]);
  for (const path of [...files.keys()].sort()) {
    // Tests of a whole cluster run by `make e2e`.
    if (!path.endsWith(".test.ts") || path.startsWith("test/cluster/")) continue;
    projects[projectOf(path)].push(path);
  }
  return projects;

  function projectOf(path: string): Project {
    if (TIMED.includes(path)) return "timed";
    if (!impure.has(path)) return "pure";
    if (path.startsWith("test/dashboard/")) return "dashboard";
    if (installing.has(path)) return "system";
    if (SYSTEM.some((folder) => path.startsWith(folder)) && !SMOKE.includes(path)) return "system";
    if (kubernetes.has(path)) return "kubernetes";
    return path.startsWith("api-server/") ? "api-server" : "components";
  }
}

/** Files that use the harness or a library that is not known to be pure, directly or not. */
function findImpure(files: ReadonlyMap<string, readonly Import[]>): ReadonlySet<string> {
  const impure = [...files].filter(([path, imports]) =>
    imports.some(({ specifier, typeOnly }) => {
      const imported = importedFile(path, specifier);
      if (typeOnly) return false;
      return imported === undefined ? !PURE_LIBRARIES.has(specifier) : imported.startsWith("test/harness/");
    }),
  );
  return withImporters(
    files,
    impure.map(([path]) => path),
  );
}

/** Returns the targets and all files that import one of them, directly or not. */
function withImporters(files: ReadonlyMap<string, readonly Import[]>, targets: readonly string[]): ReadonlySet<string> {
  const importers = new Map<string, string[]>();
  for (const [path, imports] of files) {
    for (const { specifier, typeOnly } of imports) {
      const imported = typeOnly ? undefined : importedFile(path, specifier);
      if (imported !== undefined) importers.set(imported, [...(importers.get(imported) ?? []), path]);
    }
  }
  const found = new Set(targets);
  // A set is iterated while it grows.
  for (const path of found) for (const importer of importers.get(path) ?? []) found.add(importer);
  return found;
}
