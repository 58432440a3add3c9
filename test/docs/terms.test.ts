import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");

/** Terms of the glossary that types are named after: each names one thing in the whole project. */
const TERMS = [{ term: "Exchange", file: "sidecar/decision/exchange.ts" }];

const sources = ["core", "edge", "api-server", "sidecar", "operator", "cli"].flatMap((part) =>
  readdirSync(join(ROOT, part), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.includes("node_modules"))
    .map((name) => `${part}/${name}`),
);

test.each(TERMS)("type $term is declared in $file only", ({ term, file }) => {
  const declaration = new RegExp(`^(?:export )?(?:abstract )?(?:class|interface|type) ${term}\\b`, "m");
  const declaring = sources.filter((source) => declaration.test(readFileSync(join(ROOT, source), "utf8")));
  expect(declaring).toEqual([file]);
});
