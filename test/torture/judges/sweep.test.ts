import { expect, test } from "vitest";
import type { AskEntry } from "../journal.ts";
import type { KeyState } from "../model.ts";
import { aCase, anAsk, found } from "./a-case.ts";
import { judgeSweep } from "./sweep.ts";

const count = (answer: AskEntry["answer"], state: Partial<KeyState> | undefined, more: Partial<AskEntry> = {}) => {
  const keys = new Map(state === undefined ? [] : [["key-1", found(state)]]);
  return judgeSweep(aCase({}, { keys, sweep: [anAsk(1, answer, { needs: "own", ...more })] })).length;
};

test.each([
  { answer: "valid", state: {}, violations: 0 },
  { answer: "refused", state: {}, violations: 1 },
  { answer: "unavailable", state: {}, violations: 1 },
  { answer: "limited", state: {}, violations: 1 },
  { answer: "valid", state: { enabled: false }, violations: 1 },
  { answer: "valid", state: { expired: true }, violations: 1 },
  { answer: "valid", state: { exists: false }, violations: 1 },
  { answer: "valid", state: { permitted: false }, violations: 1 },
  { answer: "forbidden", state: { permitted: false }, violations: 0 },
  { answer: "refused", state: undefined, violations: 0 },
  { answer: "valid", state: undefined, violations: 1 },
] as const)("$answer where Postgres has $state: $violations", ({ answer, state, violations }) => {
  expect(count(answer, state)).toBe(violations);
});

test("of repeated verifications the last reply counts", () => {
  const asks = (...answers: AskEntry["answer"][]) => answers.map((answer, n) => anAsk(n, answer, { needs: "own" }));
  const keys = new Map([["key-1", found()]]);
  expect(judgeSweep(aCase({}, { keys, sweep: asks("none", "valid") }))).toEqual([]);
  expect(judgeSweep(aCase({}, { keys, sweep: asks("none", "unavailable") }))).toHaveLength(1);
});

test("a limited key may have used up its limit", () => {
  expect(count("limited", {}, { keyKind: "limited" })).toBe(0);
  expect(count("limited", { enabled: false }, { keyKind: "limited" })).toBe(1);
});
