import { expect, test } from "vitest";
import { aCase, anAsk } from "./a-case.ts";
import { checkEvents } from "./events.ts";

const asks = [anAsk(1, "valid"), anAsk(2, "none")];

test("event checker permits at most as many events as requests", () => {
  expect(checkEvents(aCase({ asks }, { eventCount: 2 }))).toEqual([]);
  expect(checkEvents(aCase({ asks }, { eventCount: 3 }))).toHaveLength(1);
  expect(checkEvents(aCase({ asks }, { eventCount: 3, sweep: [anAsk(3, "valid")] }))).toEqual([]);
});

test("event checker rejects two events of one request", () => {
  const repeatedEvents = [{ requestId: "req_1", count: 2 }];
  expect(checkEvents(aCase({ asks }, { eventCount: 2, repeatedEvents }))).toHaveLength(1);
});
