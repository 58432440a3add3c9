import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EXPECTED } from "../api-server/test/permissions-expected.ts";
import { OPERATOR_PERMISSIONS } from "../core/permissions/operator.ts";
import { rootKeyPermissionProblem } from "../core/permissions/root-key.ts";

/** Returns the procedures called in the sources of the operator. */
function calledProcedures(): string[] {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" });
  const sources = files.filter((name) => name.endsWith(".ts") && !/\.test\.ts$|^test\//.test(name));
  const called = sources.flatMap((name) =>
    [...readFileSync(join(import.meta.dirname, name), "utf8").matchAll(/\.call\(\s*"([\w.]+)"/g)].map(
      ([, p = ""]) => p,
    ),
  );
  return [...new Set(called)].sort();
}

test("operator root key has exactly the permissions of the procedures that it calls", () => {
  const required = calledProcedures().flatMap((procedure) => {
    const expected = EXPECTED[procedure];
    if (expected === undefined) throw new Error(`${procedure} is not in permissions-expected.ts`);
    return [...expected.needs, ...Object.values(expected.also ?? {}).flat()].map((tuple) =>
      tuple.replace(/<\w+>/, "*"),
    );
  });
  expect([...OPERATOR_PERMISSIONS].sort()).toEqual([...new Set(required)].sort());
});

test("each operator permission is valid for a root key", () => {
  expect(OPERATOR_PERMISSIONS.filter((tuple) => rootKeyPermissionProblem(tuple) !== undefined)).toEqual([]);
});
