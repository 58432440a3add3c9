import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { REASONS } from "../../api-server/health/health.ts";
import { ROWS } from "../outages/rows.ts";
import { SHOWN } from "../outages/shown.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "docs/operations/failure-modes.md"), "utf8");

/** First cells of the table whose header begins with `head`. */
function firstCells(head: string): string[] {
  const [, table = ""] =
    new RegExp(`^\\| ${head} \\|[^\\n]*\\n\\|[- |]+\\|\\n((?:\\|[^\\n]*\\n)+)`, "m").exec(page) ?? [];
  return [...table.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = ""]) => cell);
}

test("a test covers every row of docs/operations/failure-modes.md, and the page has a row for every tested outage", () => {
  const rows = firstCells("unavailable");
  expect(rows.length).toBeGreaterThan(6);
  const covered = new Set([...ROWS, ...SHOWN].flatMap(({ down }) => down ?? []));
  expect([...covered].sort()).toEqual(rows.toSorted());
});

test("every promise that no outage test covers has another test", () => {
  const missing = SHOWN.filter(({ file, name }) => !readFileSync(join(ROOT, file), "utf8").includes(name));
  expect(missing).toEqual([]);
});

test("docs/operations/failure-modes.md lists exactly the degradation reasons of the code", () => {
  const [, section = ""] = /^## Readiness and degradation\n(.*?)^## /ms.exec(page) ?? [];
  const entries = [...section.matchAll(/^- ((?:`\w+`(?:, )?)+): /gm)].map(([, names = ""]) => names);
  expect(entries.join(", ")).toBe(REASONS.map((reason) => `\`${reason}\``).join(", "));
});
