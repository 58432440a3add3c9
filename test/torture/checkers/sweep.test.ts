import { expect, test } from "vitest";
import type { AskEntry } from "../journal.ts";
import type { KeyState } from "../model.ts";
import { aCase, anAsk, found } from "./a-case.ts";
import { checkSweep } from "./sweep.ts";

const count = (response: AskEntry["response"], state: Partial<KeyState> | undefined, more: Partial<AskEntry> = {}) => {
  const keys = new Map(state === undefined ? [] : [["key-1", found(state)]]);
  return checkSweep(aCase({}, { keys, sweep: [anAsk(1, response, { needs: "own", ...more })] })).length;
};

test.each([
  { response: "valid", state: {}, violations: 0 },
  { response: "refused", state: {}, violations: 1 },
  { response: "unavailable", state: {}, violations: 1 },
  { response: "limited", state: {}, violations: 1 },
  { response: "valid", state: { enabled: false }, violations: 1 },
  { response: "valid", state: { expired: true }, violations: 1 },
  { response: "valid", state: { exists: false }, violations: 1 },
  { response: "valid", state: { permitted: false }, violations: 1 },
  { response: "forbidden", state: { permitted: false }, violations: 0 },
  { response: "refused", state: undefined, violations: 0 },
  { response: "valid", state: undefined, violations: 1 },
] as const)(
  "final check finds $violations violations for the response $response when Postgres has $state",
  ({ response, state, violations }) => {
    expect(count(response, state)).toBe(violations);
  },
);

test("final check uses the last response of repeated verifications", () => {
  const asks = (...responses: AskEntry["response"][]) =>
    responses.map((response, n) => anAsk(n, response, { needs: "own" }));
  const keys = new Map([["key-1", found()]]);
  expect(checkSweep(aCase({}, { keys, sweep: asks("none", "valid") }))).toEqual([]);
  expect(checkSweep(aCase({}, { keys, sweep: asks("none", "unavailable") }))).toHaveLength(1);
});

test("final check permits rejection of a key by its rate limit", () => {
  expect(count("limited", {}, { keyKind: "limited" })).toBe(0);
  expect(count("limited", { enabled: false }, { keyKind: "limited" })).toBe(1);
});
