import { expect, test } from "vitest";
import type { AskEntry, FaultEntry, GrantEntry } from "../journal.ts";
import { CREDITS } from "../load/keys.ts";
import { aCase, aGrant, anAsk, anInternalError } from "./a-case.ts";
import { checkCredits } from "./credits.ts";

const spend = (times: number, response: AskEntry["response"] = "valid", fromS = 0): AskEntry[] =>
  Array.from({ length: times }, (_, n) => anAsk(fromS + n / 100, response, { keyKind: "credited" }));

function count(
  asks: readonly AskEntry[],
  left: number | undefined,
  { grants = [], faults = [] }: { grants?: GrantEntry[]; faults?: FaultEntry[] } = {},
): number {
  const credits = new Map(left === undefined ? [] : [["key-1", left]]);
  return checkCredits(aCase({ asks, grants, faults }, { credits })).length;
}

test("credit checker permits spending exactly all credits", () => {
  expect(count(spend(CREDITS), 0)).toBe(0);
  expect(count(spend(CREDITS + 1), 0)).toBe(1);
});

test("credit checker compares remaining and spent credits", () => {
  expect(count(spend(10), CREDITS - 10)).toBe(0);
  expect(count(spend(10), CREDITS - 9)).toBe(1);
  expect(count(spend(10), CREDITS - 11)).toBe(1);
  expect(count(spend(10), undefined)).toBe(1);
});

test("credit checker counts requests without a decision as possibly spent", () => {
  const asks = [...spend(10), ...spend(2, "unavailable"), ...spend(1, "none")];
  expect([count(asks, CREDITS - 10), count(asks, CREDITS - 13), count(asks, CREDITS - 14)]).toEqual([0, 0, 1]);
});

test("credit checker rejects a response that reports exhausted credits while credits remain", () => {
  const late = spend(1, "exhausted", 50);
  expect(count([...spend(CREDITS), ...late], 0)).toBe(0);
  expect(count([...spend(CREDITS - 1), ...late], 1)).toBe(1);
  // One more may have been spent.
  expect(count([...spend(CREDITS - 1), ...spend(1, "none"), ...late], 1)).toBe(0);
  const grants = (seconds: number) => [aGrant(seconds, 5)];
  expect(count([...spend(CREDITS), ...late], 5, { grants: grants(40) })).toBe(1);
  expect(count([...spend(CREDITS), ...late], 5, { grants: grants(50) })).toBe(0);
});

test("credit checker counts acknowledged grants as certain and unanswered grants as possible", () => {
  const grants = [aGrant(1, 50), aGrant(2, 7, { outcome: "unknown" }), aGrant(3, 900, { outcome: "refused" })];
  expect(count(spend(10), CREDITS + 40, { grants })).toBe(0);
  expect(count(spend(10), CREDITS + 47, { grants })).toBe(0);
  expect(count(spend(10), CREDITS + 48, { grants })).toBe(1);
  expect(count(spend(10), CREDITS + 39, { grants })).toBe(1);
});

test("credit checker forgives only recent spending after Redis data loss", () => {
  const faults = [anInternalError("flush-redis", 20, 20)];
  const [early, late] = [spend(10, "valid", 5), spend(10, "valid", 18)];
  expect(count([...early, ...late], CREDITS - 10, { faults })).toBe(0);
  expect(count([...early, ...late], CREDITS - 9, { faults })).toBe(1);
});

test("credit checker forgives unwritten spending during a Postgres outage", () => {
  const faults = [anInternalError("abort-postgres", 8, 12), anInternalError("restart-redis-empty", 14, 15)];
  expect(count(spend(10, "valid", 7), CREDITS, { faults })).toBe(0);
  expect(count(spend(10, "valid", 3), CREDITS, { faults })).toBe(1);
});
