import { type Import, importedFile } from "./imports.ts";

/** What computes and does nothing else: opens no connection, starts no process. */
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
 * The test files that need no part of the harness: neither they nor anything that they import, however far down, imports
 * the harness or a library that is not known to compute only. They run without its set-up.
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
  // A set is walked in the order in which it grows: what imports an impure file is looked at after it.
  for (const path of impure) for (const importer of importers.get(path) ?? []) impure.add(importer);
  return [...files.keys()].filter((path) => path.endsWith(".test.ts") && !impure.has(path)).sort();
}
