import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const rows = readFileSync(join(ROOT, "docs/failures.md"), "utf8")
  .split("\n")
  .filter((line) => /^\| (?!what is away|---)/.test(line));

test("docs/failures.md has rows", () => {
  expect(rows.length).toBeGreaterThan(15);
});

test.each(rows)("row of docs/failures.md names an existing test: %s", (row) => {
  const [, file = "", name = ""] = /`(test\/\S+\.test\.ts)`: "(.+)" \|$/.exec(row) ?? [];
  expect(readFileSync(join(ROOT, file), "utf8")).toContain(`"${name}"`);
});
