import { expect, test } from "vitest";
import { type PastQuery, readHistory, withQuery } from "./query-history.ts";

test("query that runs again moves to the front of the history, and old entries are dropped", () => {
  let history: PastQuery[] = [];
  for (let n = 0; n < 60; n++) history = withQuery(history, { sql: `SELECT ${n}`, atMs: n });
  history = withQuery(history, { sql: "SELECT 30", atMs: 99 });
  expect(history).toHaveLength(50);
  expect(history.slice(0, 2)).toEqual([
    { sql: "SELECT 30", atMs: 99 },
    { sql: "SELECT 59", atMs: 59 },
  ]);
  expect(readHistory(JSON.stringify(history))).toEqual(history);
});

test.each([null, "", "{", "7", "null", '[1,null,{"sql":1,"atMs":2},{"sql":"x"}]'])(
  "invalid query history %j is read as empty",
  (stored) => {
    expect(readHistory(stored)).toEqual([]);
  },
);
