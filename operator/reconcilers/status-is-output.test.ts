import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/*
 * A status is output of the operator and never its input: a user with write access to the status of one object could otherwise claim
 * another's resources. The operator finds the stored objects of a manifest by manager (stored.ts, `findOwned`).
 */

/** Files that write statuses and read the object's own conditions to detect transitions. */
const WRITERS = new Set(["status.ts", "reconcile-object.ts"]);

test("reconcilers never read the status of any object", () => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .filter((name) => !WRITERS.has(name));
  expect(files.length).toBeGreaterThan(15);
  const readers = files.filter((name) => readsStatus(readFileSync(join(import.meta.dirname, name), "utf8")));
  expect(readers).toEqual([]);
});

/** Matches `object.status` and `const { status } = object`, but not the `status` of a condition, which is compared with a string. */
const readsStatus = (text: string): boolean =>
  /\b(?:object|target|owner|maker|other|policy|manifest|metadata|change|after|before)\??\.status\b/.test(text) ||
  /\{[^{}]*\bstatus\b[^{}]*\}\s*(?::\s*ManifestObject|=\s*(?:object|target|owner|maker|other|manifest)\b)/.test(text) ||
  /\bApiKeyPolicyStatus\.|\bRoleStatus\b|\bRatelimitNamespaceStatus\b|\bRatelimitOverrideStatus\b/.test(text);

test.each([
  "const { apiId } = (maker.status ?? {}) as { apiId?: unknown };",
  "const { namespaceId } = parseStatus(RatelimitNamespaceStatus, target);",
  "function of({ spec, status }: ManifestObject) {",
  "const { spec, status } = target;",
])("status check detects a status read in %s", (text) => expect(readsStatus(text)).toBe(true));
