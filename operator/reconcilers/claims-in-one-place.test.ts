import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/* claims.ts alone decides about two manifests that claim one name. */

/** `Conflict` is also the reason when the API rejects a name. */
const DECIDING = ["apply-manifest.ts", "claims.ts", "refusals.ts"];

const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => ({ name, text: readFileSync(join(import.meta.dirname, name), "utf8") }));
const naming = (word: RegExp) => sources.filter(({ text }) => word.test(text)).map(({ name }) => name);

test("only one module decides conflicts between claims", () => {
  expect(naming(/stalled\(\s*"Conflict"/).sort()).toEqual(DECIDING);
  expect(naming(/creationTimestamp|olderRival\(/)).toEqual(["claims.ts"]);
});
