import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");

const documents = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];

test.each(documents)("%s links to files that exist", (document) => {
  const text = readFileSync(join(ROOT, document), "utf8");
  const targets = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target = ""]) => target);
  const missing = targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => !existsSync(resolve(ROOT, dirname(document), target)));
  expect(missing).toEqual([]);
});

/** `cli/dev.ts`, `test/harness`: a path that begins with a folder of the project and is not a pattern. */
const PATH = /`((?:core|edge|api-server|sidecar|operator|cli|crds|test|scripts|examples)\/[\w./-]*)`/g;
/** Files that a guide tells the reader to create. */
const TO_BE_MADE = new Set(
  ["api-server/v2/apis/archiveApi", "api-server/v1/apis/countKeys"].flatMap((path) => [
    `${path}.ts`,
    `${path}.test.ts`,
  ]),
);

test.each(documents)("%s names files and folders that exist", (document) => {
  const text = readFileSync(join(ROOT, document), "utf8");
  const missing = [...text.matchAll(PATH)]
    .map(([, path = ""]) => path)
    .filter((path) => !TO_BE_MADE.has(path) && !existsSync(join(ROOT, path)));
  expect(missing.map((path) => `${relative(ROOT, document)}: ${path}`)).toEqual([]);
});

test("every decision is in the index", () => {
  const index = readFileSync(join(ROOT, "docs/decisions/README.md"), "utf8");
  const pages = readdirSync(join(ROOT, "docs/decisions")).filter((name) => /^\d{4}-/.test(name));
  expect(pages.filter((page) => !index.includes(`(${page})`))).toEqual([]);
});
