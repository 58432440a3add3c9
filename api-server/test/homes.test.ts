import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { procedures } from "../v2/index.ts";

/* The tests of a procedure are in one file of its folder; tests of all procedures are here. */

const read = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => readFileSync(join(folder, name), "utf8"));

const V2 = join(import.meta.dirname, "../v2");
const folders = readdirSync(V2, { withFileTypes: true }).filter((entry) => entry.isDirectory());
const beside = new Map(folders.map(({ name }) => [name, read(join(V2, name))]));
const aboutAll = read(import.meta.dirname);

/** Procedures for all kinds of managed objects are tested beside each kind. */
const OF_ALL_KINDS = ["managed.getObject"];

test.each(procedures.map(({ path }) => path))("tests of procedure %s are beside its handler", (path) => {
  const [folder = "", name = ""] = path.split(".");
  const describes = new RegExp(`^(?:describe|test)\\("(?:${folder}\\.)?${name}"`, "m");
  expect(aboutAll.filter((text) => describes.test(text)).length, "described in api-server/test").toBe(0);
  const neighbours = beside.get(folder) ?? [];
  expect(neighbours.filter((text) => describes.test(text)).length, "described beside it").toBeLessThanOrEqual(1);
  if (OF_ALL_KINDS.includes(path)) return;
  expect(neighbours.filter((text) => text.includes(`"${path}"`)).length, "called beside it").toBeGreaterThan(0);
});
