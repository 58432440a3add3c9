import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { COMMANDS } from "../../cli/commands.ts";
import { checkManifest } from "../../core/manifests/check.ts";
import { API_VERSION } from "../../core/manifests/index.ts";
import { leavesOf } from "../../scripts/generate/chart/describe-values.ts";
import { Values } from "../../scripts/generate/chart/values.ts";

/* What readers copy out of docs/: manifests are valid, values are the chart's, commands and their options are there. */

const DOCS = resolve(import.meta.dirname, "../../docs");
const pages = readdirSync(DOCS).filter((name) => name.endsWith(".md"));

interface Snippet {
  readonly page: string;
  readonly text: string;
}

const snippets = (language: string): Snippet[] =>
  pages.flatMap((page) =>
    [...readFileSync(join(DOCS, page), "utf8").matchAll(/^( *)```(\w+)\n(.*?)^ *```/gms)]
      .filter(([, , of]) => of === language)
      .map(([, indent = "", , text = ""]) => ({ page, text: text.replaceAll(new RegExp(`^${indent}`, "gm"), "") })),
  );

/** Commands, a line each. */
const commands = snippets("sh").flatMap(({ page, text }) =>
  text
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ page, line })),
);

test.each(snippets("yaml"))("manifests in $page are valid", ({ text }) => {
  for (const document of parseAllDocuments(text)) {
    expect(document.errors).toEqual([]);
    const object = document.toJS() as { apiVersion?: string };
    if (object.apiVersion === API_VERSION) expect(checkManifest(object)).toEqual([]);
  }
});

const values = leavesOf(Values).map(({ path }) => path);
const isValue = (path: string) => values.some((known) => path === known || path.startsWith(`${known}.`));

test.each(commands.filter(({ line }) => /^helm /.test(line)))("helm command in $page works: $line", ({ line }) => {
  expect(line).toMatch(/^helm (install|upgrade|uninstall|rollback) postern\b/);
  const set = [...line.matchAll(/--set '?([\w.]+)=/g)].map(([, path = ""]) => path);
  expect(set.filter((path) => !isValue(path))).toEqual([]);
});

/** The words and options of a command of ours, also behind `kubectl`, and in the api-server's image. */
const ours = commands.flatMap(({ page, line }) => {
  const [, words] = /^(?:kubectl )?postern (.*)$/.exec(line) ?? / node \/app\/main\.mjs (.*)$/.exec(line) ?? [];
  return words === undefined ? [] : [{ page, words }];
});

test.each(ours)("command in $page is valid: postern $words", async ({ words }) => {
  const row = COMMANDS.filter(({ name }) => words === name || words.startsWith(`${name} `)).at(-1);
  expect(row, words).toBeDefined();
  const known = Object.keys((await row?.load())?.options ?? {});
  const used = [...words.matchAll(/(?<=\s)--([\w-]+)/g)].map(([, name = ""]) => name);
  expect([...known, "json", "help"]).toEqual(expect.arrayContaining(used));
});

/** `10m, 64Mi` and `256Mi` of a value like `operator.resources`. */
function sizesOf(path: string): readonly string[] {
  const leaf = leavesOf(Values).find((one) => one.path === path);
  if (leaf === undefined) throw new Error(`the chart has no value ${path}`);
  const { requests, limits } = leaf.standard as Record<"requests" | "limits", Record<string, string>>;
  return [`${requests.cpu}, ${requests.memory}`, `${limits.memory}`];
}

test.each([
  { part: "api-server", path: "apiServer.resources" },
  { part: "operator", path: "operator.resources" },
  { part: "gate", path: "injection.gateResources" },
])("docs/sizing.md has the chart's sizes for the $part", ({ part, path }) => {
  const row = readFileSync(join(DOCS, "sizing.md"), "utf8")
    .split("\n")
    .find((line) => line.startsWith(`| ${part} |`));
  expect(
    row
      ?.split("|")
      .slice(3, 5)
      .map((cell) => cell.trim()),
  ).toEqual(sizesOf(path));
});

test("snippet tests find snippets", () => {
  expect(snippets("yaml").length).toBeGreaterThan(5);
  expect(commands.filter(({ line }) => line.startsWith("helm ")).length).toBeGreaterThan(2);
  expect(ours.length).toBeGreaterThan(20);
});

test("every command named in page text exists", () => {
  const names = COMMANDS.map(({ name }) => name);
  const below = (readdirSync(DOCS, { recursive: true }) as string[]).filter((name) => name.endsWith(".md"));
  let mentions = 0;
  // Decisions also tell of what was turned down.
  for (const page of below.filter((name) => !name.startsWith("decisions/"))) {
    const mention = /(?:`|^ *|\| |kubectl |run -s )postern (?:-- )?([a-z][a-z0-9-]*)(?: ([a-z][a-z-]*))?/gm;
    for (const [all, first = "", second] of readFileSync(join(DOCS, page), "utf8").matchAll(mention)) {
      mentions += 1;
      const verbs = names.filter((name) => name.startsWith(`${first} `)).map((name) => name.split(" ")[1]);
      const isKnown = names.includes(first) || (verbs.length > 0 && (second === undefined || verbs.includes(second)));
      expect(isKnown, `${page}: ${all}`).toBe(true);
    }
  }
  expect(mentions).toBeGreaterThan(150);
});
