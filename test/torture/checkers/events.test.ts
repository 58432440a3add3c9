import { expect, test } from "vitest";
import { aCase, anAsk } from "./a-case.ts";
import { checkEvents } from "./events.ts";

const asks = [anAsk(1, "valid"), anAsk(2, "none")];

test("there are at most as many events as requests", () => {
  expect(checkEvents(aCase({ asks }, { eventCount: 2 }))).toEqual([]);
  expect(checkEvents(aCase({ asks }, { eventCount: 3 }))).toHaveLength(1);
  expect(checkEvents(aCase({ asks }, { eventCount: 3, sweep: [anAsk(3, "valid")] }))).toEqual([]);
});

test("two events of one request are a violation", () => {
  const repeatedEvents = [{ requestId: "req_1", count: 2 }];
  expect(checkEvents(aCase({ asks }, { eventCount: 2, repeatedEvents }))).toHaveLength(1);
});
