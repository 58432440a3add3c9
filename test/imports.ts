import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The imports of our sources, parsed from their text. Paths are relative to the project's folder. */

const ROOT = resolve(import.meta.dirname, "..");

export interface Import {
  readonly specifier: string;
  /** Whether it is erased before the file runs. */
  readonly typeOnly: boolean;
}

/** Returns all imports and re-exports of a source text, including `import(…)` of a constant. */
export function readImports(text: string): Import[] {
  const statements = [...text.matchAll(/^((?:import|export)\b(?:[^;"]*?\bfrom)?)\s*"([^"]+)"/gm)];
  const calls = [...text.matchAll(/\bimport\(\s*"([^"]+)"/g)];
  return [
    ...statements.map(([, head = "", specifier = ""]) => ({ specifier, typeOnly: /^\w+ type\b/.test(head) })),
    ...calls.map(([, specifier = ""]) => ({ specifier, typeOnly: false })),
  ];
}

/** The imports of each TypeScript file below the folders, by its path. */
export function importsBelow(folders: readonly string[]): Map<string, Import[]> {
  const paths = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name) && !/(^|\/)(node_modules|dist[^/]*)\//.test(name))
      .map((name) => `${folder}/${name}`),
  );
  return new Map(paths.map((path) => [path, readImports(readFileSync(join(ROOT, path), "utf8"))]));
}

/** The path of the file that a relative import leads to; undefined for a library. */
export function importedFile(importer: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  return join(importer, "..", specifier);
}
