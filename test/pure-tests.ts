import { type Import, importedFile } from "./imports.ts";

/** Libraries that only compute: they open no connection and start no process. */
const LIBRARIES = new Set([
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

/**
 * Returns the test files that need no part of the harness: neither they nor anything that they import, directly or not, imports
 * the harness or a library that is not known to be pure. They run without the harness's set-up.
 */
export function pureTests(files: ReadonlyMap<string, readonly Import[]>): string[] {
  const importers = new Map<string, string[]>();
  const impure = new Set<string>();
  for (const [path, imports] of files) {
    for (const { specifier, typeOnly } of imports) {
      if (typeOnly) continue;
      const imported = importedFile(path, specifier);
      if (imported === undefined ? !LIBRARIES.has(specifier) : imported.startsWith("test/harness/")) impure.add(path);
      if (imported !== undefined) importers.set(imported, [...(importers.get(imported) ?? []), path]);
    }
  }
  // A set is iterated while it grows: importers of an impure file are added and visited later.
  for (const path of impure) for (const importer of importers.get(path) ?? []) impure.add(importer);
  return [...files.keys()].filter((path) => path.endsWith(".test.ts") && !impure.has(path)).sort();
}
