import { expect, test } from "vitest";
import type { AskEntry } from "../journal.ts";
import { aCase, anAsk, anInternalError } from "./a-case.ts";
import { MEND_MS } from "./faults.ts";
import { calmMs, checkResponses, slowestMendMs } from "./responses.ts";

const faults = [anInternalError("stop-redis", 10, 12)];
const count = (...asks: AskEntry[]) => checkResponses(aCase({ asks, faults })).length;
const after = 12 + MEND_MS / 1000;

test.each(["unavailable", "none"] as const)(
  "response %s is allowed only during a fault and shortly after",
  (response) => {
    expect(count(anAsk(9, response))).toBe(1);
    expect(count(anAsk(11, response))).toBe(0);
    expect(count(anAsk(after - 1, response))).toBe(0);
    expect(count(anAsk(after + 1, response))).toBe(1);
    // Sent before the fault, answered during it.
    expect(count(anAsk(9, response, { answeredMs: anAsk(10, response).sentMs }))).toBe(0);
  },
);

test("fault of one tenant does not excuse a failed response to another tenant", () => {
  const asks = [anAsk(11, "unavailable")];
  expect(checkResponses(aCase({ asks, faults: [anInternalError("attack", 10, 12)] }))).toHaveLength(1);
});

test("checker never allows an undocumented response", () => {
  expect(count(anAsk(11, "odd"))).toBe(1);
});

test("checker accepts a few failed requests while Redis is slow", () => {
  const counted = (times: number, response: AskEntry["response"]) =>
    Array.from({ length: times }, (_, n) => anAsk(n / 1000, response, { keyKind: "limited" }));
  expect(count(...counted(10, "unavailable"))).toBe(0);
  expect(count(...counted(11, "unavailable"))).toBe(11);
  expect(count(...counted(980, "valid"), ...counted(20, "unavailable"))).toBe(0);
  expect(count(...counted(900, "valid"), ...counted(100, "unavailable"))).toBe(100);
});

test("calm time in a torture run is counted between verifications and excludes faults and recovery", () => {
  const asks = [anAsk(0, "valid"), anAsk(after + 5, "valid", { answeredMs: anAsk(after + 5, "valid").sentMs })];
  expect(calmMs(aCase({ asks, faults }))).toBe(15_000);
  expect(
    calmMs(
      aCase({ asks, faults: [...faults, anInternalError("attack", 0, 3), anInternalError("stop-redis", 20, 60)] }),
    ),
  ).toBe(10_000);
  expect(calmMs(aCase({}))).toBe(0);
});

test("checker measures the slowest recovery from the end of the last fault", () => {
  const asks = [anAsk(11, "none"), anAsk(15, "unavailable"), anAsk(20, "valid")];
  expect(slowestMendMs(aCase({ asks, faults }))).toBe(3000);
});
