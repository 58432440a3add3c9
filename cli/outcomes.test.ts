import { expect, test } from "vitest";
import { exitCodeOf, OUTCOMES, type Outcome } from "./outcomes.ts";

test.each(["SUSPENDED", "constructor", "VALID\u001b[31m", ""])(
  "rejection with the unknown code %j does not exit with 0",
  (code) => {
    expect(exitCodeOf(code as Outcome, false)).toBe(1);
    expect(exitCodeOf(code as Outcome, true)).toBe(0);
  },
);

test("exit code of a rejected request is never 0, even for an unknown outcome", () => {
  expect(OUTCOMES.filter((code) => exitCodeOf(code, false) === 0)).toEqual([]);
  expect(exitCodeOf("NOT_FOUND", false)).toBe(10);
  expect(exitCodeOf("DISABLED", true)).toBe(0);
});
