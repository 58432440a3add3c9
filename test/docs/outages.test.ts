import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { ASKS, ROWS } from "../outages/rows.ts";
import { SHOWN } from "../outages/shown.ts";
import { cellsOf, toShownCells } from "../outages/table.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const textOf = (name: string): string => readFileSync(join(ROOT, "docs", name), "utf8");
const cells = (line: string): string[] =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());

const rowsOf = (text: string): string[][] =>
  text
    .split("\n")
    .filter((line) => /^\| (?!down \|)/.test(line))
    .map(cells);
const [page = [], shown = []] = textOf("outages.md").split("\n| down | what | test |\n").map(rowsOf);

test("docs/outages.md matches the tested outages; `npm run outages` writes it", () => {
  expect(page.map((row) => row.slice(0, 3))).toEqual(ROWS.map(cellsOf));
  for (const row of page) {
    expect(row).toHaveLength(3 + Object.keys(ASKS).length + 2);
    expect(row.at(-1)).toMatch(/^\d+\.\d s$/);
  }
});

test("outage tests cover every row of the table in docs/architecture.md", () => {
  const section = /^## When something is down$(.*?)^\[Outages/ms.exec(textOf("architecture.md"))?.[1] ?? "";
  const rows = [...section.matchAll(/^\| (?!down |---)([^|]+) \|/gm)].map(([, down = ""]) => down);
  expect(rows.length).toBeGreaterThan(3);
  expect([...new Set(ROWS.map(({ down }) => down))].sort()).toEqual([...rows].sort());
});

test("promises beyond the outage tests refer to existing tests", () => {
  expect(shown).toEqual(SHOWN.map(toShownCells));
  for (const { down, file, name } of SHOWN) {
    expect(ROWS.map((row) => row.down)).toContain(down);
    expect(readFileSync(join(ROOT, file), "utf8"), file).toContain(name);
  }
});
