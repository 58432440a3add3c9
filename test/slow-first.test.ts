import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

test("the files that are begun first are there", () => {
  const source = readFileSync(join(import.meta.dirname, "slow-first.ts"), "utf8");
  const files = [...source.matchAll(/^ {2}"(.*)",$/gm)].map(([, file = ""]) => file);
  expect(files.length).toBeGreaterThan(5);
  expect(files.filter((file) => !existsSync(resolve(import.meta.dirname, "..", file)))).toEqual([]);
});
