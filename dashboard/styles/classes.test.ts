import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const DASHBOARD = resolve(import.meta.dirname, "..");

/** All styles are one file for the browser, so a class that two of ours begin rules with is styled by both. */
test("all rules of a CSS class are in the same file", () => {
  const paths = globSync("{pages,components,shell,styles}/**/*.css", { cwd: DASHBOARD });
  const owners = new Map<string, Set<string>>();
  for (const path of paths) {
    for (const [, name = ""] of readFileSync(resolve(DASHBOARD, path), "utf8").matchAll(/^\.([a-z][a-z0-9-]*)/gm)) {
      owners.set(name, (owners.get(name) ?? new Set()).add(path));
    }
  }
  expect(owners.size).toBeGreaterThan(100);
  expect([...owners].filter(([, files]) => files.size > 1).map(([name]) => name)).toEqual([]);
});
