import { describe, expect, test } from "vitest";
import { type Bound, boundText, fieldLabel, readBounds, wordsOf } from "./bound.ts";

const aBound = (more: Partial<Bound> = {}): Bound => ({
  name: "queriesPerHour",
  about: "queries per hour; 0 rejects every query",
  value: 500,
  byDefault: 1000,
  min: 0,
  max: 100_000,
  ...more,
});

describe("the query limits form", () => {
  test.each([
    { name: "what is as it was is not sent", text: "500", changes: [] },
    { name: "the same number in another spelling is not sent", text: " 5 00", changes: [] },
    { name: "another number is sent", text: "20,000", changes: [20_000] },
    { name: "the least is sent", text: "0", changes: [0] },
    { name: "the most is sent", text: "100000", changes: [100_000] },
    { name: "nothing is the default", text: " ", changes: [null] },
  ])("query limits form sends the expected changes: $name", ({ text, changes }) => {
    const read = readBounds([aBound()], { queriesPerHour: text });
    expect(read.changes.map(({ to }) => to)).toEqual(changes);
    expect(read.faults.size).toBe(0);
  });

  test.each(["-1", "1.5", "100001", "many", "1e3", "٣"])(
    "query limit %s is invalid, and the error states the valid range",
    (text) => {
      const { changes, faults } = readBounds([aBound()], { queriesPerHour: text });
      expect(changes).toEqual([]);
      expect(faults.get("queriesPerHour")).toBe("An integer from 0 to 100,000; empty for the default.");
    },
  );

  test("clearing a query limit that already has the default value sends no change", () => {
    expect(readBounds([aBound({ value: 1000 })], { queriesPerHour: "" }).changes).toEqual([]);
  });

  test("query limits form keeps an out-of-range value from another version", () => {
    const read = readBounds([aBound({ value: 4.5 }), aBound({ name: "queryRows" })], { queryRows: "7" });
    expect(read.changes.map(({ bound: { name }, to }) => [name, to])).toEqual([["queryRows", 7]]);
    expect(read.faults.size).toBe(0);
  });
});

test("query limit has a label, or the server's description if the limit is unknown", () => {
  expect(boundText(aBound(), 1000)).toBe("1,000 queries");
  expect(["queriesPerHour", "querySecondsPerHour"].map((name) => fieldLabel(aBound({ name })))).toEqual([
    "Queries per hour",
    "Run time of all queries per hour (s)",
  ]);
  const unknown = aBound({ name: "toString", about: "something new" });
  expect([wordsOf(unknown), boundText(unknown, 5)]).toEqual([
    { label: "toString", unit: "", about: "something new" },
    "5",
  ]);
});
