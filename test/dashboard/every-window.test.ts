import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { ALL_WINDOWS, EVERY_WINDOW } from "./every-window.ts";

/* Holds that every component that opens a window is in the table that windows-of-*.test.ts test. */

const DASHBOARD = resolve(import.meta.dirname, "../../dashboard");
/** What of the headless library opens nothing. */
const QUIET = ["csp-provider", "tabs", "toast"];

const SOURCES = readdirSync(DASHBOARD, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".tsx"))
  .map((path) => ({ path, text: readFileSync(join(DASHBOARD, path), "utf8") }));

/** What stands at the outermost level of a file: `name` from `start` on. */
const declarationsOf = (text: string): { readonly name: string; readonly start: number }[] =>
  [...text.matchAll(/^(?:export )?(?:function|const) (\w+)/gm)].map(({ 1: name = "", index }) => ({
    name,
    start: index,
  }));

/** The declaration that each match stands in, once for each match. */
const holdersOf = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(
    ({ index }) => declarationsOf(text).findLast(({ start }) => start < index)?.name ?? "nothing",
  );

const elements = (names: Iterable<string>): RegExp => new RegExp(`<(?:${[...names].join("|")})\\b`, "g");

/** The parts that open a window: by the headless library, by the browser, or by another part. */
function windowParts(): Set<string> {
  const parts = SOURCES.filter(({ path }) => path.startsWith("components/"));
  const found = new Set(
    parts
      .filter(({ text }) =>
        [...text.matchAll(/"@base-ui\/react\/([\w-]+)"/g)].some(([, of = ""]) => !QUIET.includes(of)),
      )
      .flatMap(({ text }) => [...text.matchAll(/^export function (\w+)/gm)].map(([, name = ""]) => name)),
  );
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const { text } of parts) for (const name of holdersOf(text, elements(found))) found.add(name);
  }
  return found;
}

test("dialog table of the tests lists every dialog of every component", () => {
  const parts = windowParts();
  expect([...parts]).toEqual(expect.arrayContaining(["Dialog", "Drawer", "Menu", "ConfirmDialog", "YamlButton"]));
  const wanted = SOURCES.filter(({ path }) => !path.startsWith("components/")).flatMap(({ text }) => [
    ...holdersOf(text, elements(parts)),
    ...holdersOf(text, /\spopover=|<dialog\b/g),
  ]);
  const inTable = ALL_WINDOWS.flatMap(({ by }) => by);
  const missing = [...new Set(wanted)].filter(
    (name) => inTable.filter((one) => one === name).length < wanted.filter((one) => one === name).length,
  );
  expect(missing, "put each window of these into test/dashboard/every-window.ts").toEqual([]);
  expect(inTable.filter((name) => !wanted.includes(name))).toEqual([]);
});

test("dialog names are unique", () => {
  const names = ALL_WINDOWS.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test("each part of the dialog table has a test file", () => {
  const files = readdirSync(import.meta.dirname);
  expect(files).toEqual(expect.arrayContaining(Object.keys(EVERY_WINDOW).map((of) => `windows-of-${of}.test.ts`)));
});
