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

test.each(documents)("links in %s point to existing files", (document) => {
  const text = readFileSync(join(ROOT, document), "utf8");
  const targets = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target = ""]) => target);
  const missing = targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => !existsSync(resolve(ROOT, dirname(document), target)));
  expect(missing).toEqual([]);
});

interface Link {
  readonly document: string;
  /** A file or folder below the root; the document itself for a link within it. */
  readonly target: string;
  readonly anchor: string | undefined;
}

/** The links of a page to others of the project. Code is no text. */
function linksOf(document: string): Link[] {
  const text = readFileSync(join(ROOT, document), "utf8")
    .replaceAll(/^ *```.*?^ *```/gms, "")
    .replaceAll(/`[^`\n]*`/g, "`");
  return [...text.matchAll(/\]\(([^)\s]*)\)/g)]
    .map(([, link = ""]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? document : relative(ROOT, resolve(ROOT, dirname(document), path));
      return { document, target, anchor };
    });
}

/** The anchors of headings, as GitHub makes them: of headings with the same text the second has a 1 after it. */
function anchorsOf(document: string): Set<string> {
  const text = readFileSync(join(ROOT, document), "utf8").replaceAll(/^ *```.*?^ *```/gms, "");
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.matchAll(/^#+ +(.*)$/gm)) {
    const shown = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    const anchor = shown
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(/\s/g, "-");
    let unique = anchor;
    for (let i = 1; anchors.has(unique); i++) unique = `${anchor}-${i}`;
    anchors.add(unique);
  }
  return anchors;
}

test("every link with a fragment finds its heading", () => {
  const links = documents
    .flatMap(linksOf)
    .filter(({ target, anchor }) => anchor !== undefined && target.endsWith(".md"));
  expect(links.length).toBeGreaterThan(20);
  const dead = links.filter(
    ({ target, anchor = "" }) => existsSync(join(ROOT, target)) && !anchorsOf(target).has(anchor),
  );
  expect(dead.map(({ document, target, anchor }) => `${document}: ${target}#${anchor}`)).toEqual([]);
});

test("every page of docs/ is reachable from the README", () => {
  const reached = new Set(["README.md"]);
  // A set is iterated while it grows.
  for (const page of reached) {
    for (const { target } of linksOf(page)) {
      for (const found of [target, join(target, "README.md")]) if (documents.includes(found)) reached.add(found);
    }
  }
  expect(documents.filter((page) => page.startsWith("docs/") && !reached.has(page))).toEqual([]);
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

test.each(documents)("paths named in %s exist", (document) => {
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
