import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { findCircle } from "../circles.ts";
import { COMPONENT_IMPORTS, FOLDER_IMPORTS } from "../import-rules.ts";
import { importedFile, importsBelow } from "../imports.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PARTS = Object.keys(COMPONENT_IMPORTS);

const isTest = (path: string) => path.endsWith(".test.ts") || /(^|\/)test\//.test(path);
/** Every source file by its path, with its imports; those of types count as well. */
const FILES = new Map([...importsBelow(PARTS)].filter(([path]) => !isTest(path)));

const sources = (folder: string): string[] => [...FILES.keys()].filter((path) => path.startsWith(`${folder}/`));
const textOf = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const imports = (path: string): string[] => (FILES.get(path) ?? []).map(({ specifier }) => specifier);
/** The files of the project that a file imports. */
const importedFiles = (path: string): string[] =>
  imports(path).flatMap((specifier) => importedFile(path, specifier) ?? []);

describe.each(PARTS)("%s/", (part) => {
  test("component imports only components that COMPONENT_IMPORTS allows", () => {
    const mayImport = (other: string) => other === part || COMPONENT_IMPORTS[part]?.includes(other);
    const wrong = sources(part).flatMap((path) =>
      importedFiles(path)
        .filter((imported) => !mayImport(imported.split("/")[0] ?? ""))
        .map((imported) => `${path} imports ${imported}`),
    );
    expect(wrong).toEqual([]);
  });

  test("component has no cycles between folders and files", () => {
    const graph = new Map<string, Set<string>>();
    for (const path of sources(part)) {
      const own = graph.get(placeOf(path)) ?? new Set();
      graph.set(placeOf(path), own);
      for (const imported of importedFiles(path)) if (placeOf(imported) !== placeOf(path)) own.add(placeOf(imported));
    }
    expect(findCircle(graph)).toBeUndefined();
  });
});

/** `edge/redis/` for what is below that folder, else the file itself. */
function placeOf(path: string): string {
  const [part, folder, ...below] = path.split("/");
  return below.length === 0 ? path : `${part}/${folder}/`;
}

test("no file imports itself through other files", () => {
  expect(findCircle(new Map([...FILES.keys()].map((path) => [path, importedFiles(path)])))).toBeUndefined();
});

const FOLDERS = Object.keys(FOLDER_IMPORTS);

describe.each(FOLDERS)("%s/", (folder) => {
  test("folder imports only folders and files that FOLDER_IMPORTS allows", () => {
    const [part] = folder.split("/");
    const wrong = sources(folder).flatMap((path) =>
      importedFiles(path)
        .filter((imported) => imported.startsWith(`${part}/`) && placeOf(imported) !== `${folder}/`)
        .filter((imported) => !FOLDER_IMPORTS[folder]?.includes(placeOf(imported)))
        .map((imported) => `${path} imports ${imported}`),
    );
    expect(wrong).toEqual([]);
  });
});

test("every folder of the layered components is in FOLDER_IMPORTS", () => {
  const folders = ["edge", "http", "api-server", "sidecar", "operator", "dashboard"].flatMap((part) =>
    readdirSync(join(ROOT, part), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== "test" && !entry.name.startsWith("dist"))
      .map(({ name }) => `${part}/${name}`),
  );
  expect(FOLDERS.toSorted()).toEqual(folders.sort());
});

/** Whether a specifier leads into a library past its entry, by a path that it does not export. A style sheet can be had in no other way. */
function isInnerFile(specifier: string): boolean {
  const [, library = "", path] = /^((?:@[^/]+\/)?[^/]+)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (path === undefined || /^(?:\.|node:)|\.css$/.test(specifier)) return false;
  const { exports } = JSON.parse(readFileSync(join(ROOT, "node_modules", library, "package.json"), "utf8"));
  return exports === undefined;
}

test("dashboard pages never import other pages", () => {
  const pageOf = (path: string) => /^dashboard\/pages\/[^/]+\//.exec(path)?.[0];
  const wrong = sources("dashboard/pages").flatMap((path) =>
    importedFiles(path)
      .filter((imported) => pageOf(imported) !== undefined && pageOf(imported) !== pageOf(path))
      .map((imported) => `${path} imports ${imported}`),
  );
  expect(wrong).toEqual([]);
});

test("no import uses an internal file of a library, except the files that a decision names", () => {
  const decision = readFileSync(join(ROOT, "docs/decisions/0024-own-http-path.md"), "utf8");
  const inner = PARTS.flatMap((part) => sources(part)).flatMap((file) => imports(file).filter(isInnerFile));
  expect(inner.filter((specifier) => !decision.includes(`\`${specifier}\``))).toEqual([]);
});

test("core/ stays pure because it imports only computational libraries", () => {
  const libraries = new Set(
    sources("core")
      .flatMap((file) => imports(file))
      .filter((specifier) => !specifier.startsWith(".")),
  );
  expect([...libraries].sort()).toEqual(["ipaddr.js", "node:crypto", "yaml", "zod"]);
});

test("environment variables are read in cli/ only", () => {
  const readers = PARTS.filter((part) => part !== "cli")
    .flatMap((part) => sources(part))
    .filter((path) => textOf(path).includes("process.env"));
  expect(readers).toEqual([]);
});

test("SQL is limited to the database folder and the two analytics databases", () => {
  const sql = /\b(select|insert into|update|delete from)\b[\s\S]{0,80}\b(from|values|set|where)\b/;
  const elsewhere = sources("api-server")
    .filter((path) => !/^(?:api-server\/db|postgres|analytics)\//.test(path))
    .filter((path) => [...textOf(path).matchAll(/`([^`]*)`/g)].some(([, text = ""]) => sql.test(text)));
  expect(elsewhere).toEqual([]);
});
