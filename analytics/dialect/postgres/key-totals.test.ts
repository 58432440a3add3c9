import { describe, expect, test } from "vitest";
import { readQuery } from "../check.ts";
import { resolveQuery } from "../resolve/resolve.ts";
import { emitForPostgres } from "./emit.ts";

const NOW_MS = Date.UTC(2042, 5, 15);
const visibleFrom = { raw: 0, minute: 0, hour: 0, day: 0, month: 0 };

/** Returns the views that a query reads, in order. */
function viewsOf(text: string): string[] {
  const resolved = resolveQuery(readQuery(text, { of: "verifications", nowMs: NOW_MS, visibleFrom }));
  const sql = emitForPostgres(resolved, { nowMs: NOW_MS, rowsMax: 10 }).text;
  return Array.from(sql.matchAll(/analytics\.(key_\w+) as/g), ([, view]) => view ?? "");
}

const DAYS = "key_verifications_per_day_v1";

describe("queries on totals per key", () => {
  test.each([
    `SELECT key_id, SUM(count) AS total FROM ${DAYS} WHERE time >= now() - INTERVAL 30 DAY GROUP BY key_id ORDER BY total DESC LIMIT 10`,
    `SELECT time, sum(spent_credits) / 2, uniq(key_id), uniqExact(key_id), count(distinct key_id) FROM ${DAYS} GROUP BY time`,
    `SELECT sum(count) FROM ${DAYS}`,
    `SELECT sumIf(count, key_id LIKE 'key_a%'), min(time), max(key_id) FROM ${DAYS} WHERE key_space_id = 'ks_1'`,
    `SELECT key_id FROM ${DAYS} GROUP BY key_id HAVING sum(count) > 100`,
    `SELECT key_id, sum(sum(count)) OVER () FROM ${DAYS} GROUP BY key_id`,
    `SELECT toStartOfWeek(time) AS week, SUM(count) FROM ${DAYS} GROUP BY week ORDER BY week WITH FILL STEP 7`,
  ])("analytics query is answered from the totals per key: %s", (text) =>
    expect(viewsOf(text)).toEqual(["key_totals_per_day"]),
  );
});

describe("queries that need the table itself", () => {
  test.each([
    ["a column that the totals lack", `SELECT key_id, sum(count) FROM ${DAYS} WHERE outcome = 'VALID' GROUP BY key_id`],
    ["in a condition of an aggregate", `SELECT sumIf(count, outcome = 'VALID') FROM ${DAYS}`],
    [
      "in the order alone",
      `SELECT external_id, sum(count) AS n FROM ${DAYS} GROUP BY external_id ORDER BY external_id`,
    ],
    ["in HAVING alone", `SELECT key_id FROM ${DAYS} GROUP BY key_id HAVING max(outcome) = 'VALID'`],
    ["how many rows there are", `SELECT key_id, sum(count), count() FROM ${DAYS} GROUP BY key_id`],
    ["how many rows fit a condition", `SELECT countIf(key_id = 'a') FROM ${DAYS}`],
    ["a literal for each row", `SELECT sum(1) FROM ${DAYS}`],
    ["distinct sums", `SELECT sum(DISTINCT count) FROM ${DAYS}`],
    ["the largest row", `SELECT key_id, max(count) FROM ${DAYS} GROUP BY key_id`],
    ["the mean of rows", `SELECT avg(count) FROM ${DAYS}`],
    ["an expression of each row's sum", `SELECT sum(count * 2 - 1) FROM ${DAYS}`],
    ["each value of each row", `SELECT groupArray(key_id) FROM ${DAYS}`],
    ["any value, which may be another", `SELECT any(key_id) FROM ${DAYS}`],
    ["rows by their sum", `SELECT key_id, sum(count) FROM ${DAYS} WHERE count > 1 GROUP BY key_id`],
    ["groups by their sum", `SELECT count, sum(count) FROM ${DAYS} GROUP BY count`],
    ["no aggregate", `SELECT key_id, count FROM ${DAYS}`],
    ["distinct rows", `SELECT DISTINCT key_id FROM ${DAYS}`],
    ["one key, which has an index there", `SELECT sum(count) FROM ${DAYS} WHERE key_id = 'key_a'`],
    ["an array of each row", `SELECT arrayJoin(tags) AS tag, sum(count) FROM ${DAYS} GROUP BY tag`],
    [
      "a subquery",
      `SELECT sum(count) FROM ${DAYS} WHERE time > (SELECT min(time) FROM ${DAYS} WHERE outcome = 'VALID')`,
    ],
    ["a list of another query", `SELECT sum(count) FROM ${DAYS} WHERE time IN (SELECT time FROM ${DAYS})`],
  ])("analytics query with %s reads the day table instead of the totals per key", (_, text) =>
    expect(new Set(viewsOf(text))).toEqual(new Set([DAYS])),
  );

  test("analytics query with a join reads the day table instead of the totals per key", () => {
    expect(viewsOf(`SELECT sum(a.count) FROM ${DAYS} a JOIN ${DAYS} b ON a.key_id = b.key_id`)).toEqual([DAYS, DAYS]);
  });

  test("each SELECT of an analytics query decides separately whether to read the totals per key", () => {
    const text = `SELECT key_id, sum(count) AS n FROM ${DAYS} GROUP BY key_id
                  UNION ALL SELECT key_id, count() FROM ${DAYS} GROUP BY key_id`;
    expect(viewsOf(text)).toEqual(["key_totals_per_day", DAYS]);
  });

  test("analytics query of the hour table reads that table instead of the totals per key", () => {
    expect(viewsOf("SELECT sum(count) FROM key_verifications_per_hour_v1")).toEqual(["key_verifications_per_hour_v1"]);
  });
});
