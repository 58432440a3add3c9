import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { RELEASE } from "./release.ts";

test("release version equals the version in package.json", () => {
  const text = readFileSync(resolve(import.meta.dirname, "../package.json"), "utf8");
  expect(RELEASE).toBe((JSON.parse(text) as { version: string }).version);
});
