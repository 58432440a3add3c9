import { describe, expect, test } from "vitest";
import { offersAt, type QuerySchema } from "./completion.ts";
import { fragmentOf, queryOf, readFragment } from "./sql-fragment.ts";

const column = (name: string) => ({ name, type: "String", meaning: `${name}.` });
const SCHEMA: QuerySchema = {
  tables: [
    { name: "key_verifications_v1", of: "verifications", meaning: "Raw.", columns: [column("key_id"), column("tags")] },
    { name: "ratelimits_v1", of: "ratelimits", meaning: "Raw.", columns: [column("identifier")] },
  ],
  functions: [{ name: "sumIf", kind: "aggregate", call: "sumIf(x, c)", meaning: "Sum." }],
};
const labels = (text: string, isAsked = true) =>
  offersAt(text.replace("|", ""), text.indexOf("|"), SCHEMA, isAsked)?.options.map(({ label }) => label);

describe("completions", () => {
  test("query editor suggests only tables after FROM and JOIN", () => {
    expect(labels("SELECT * FROM |")).toEqual(["key_verifications_v1", "ratelimits_v1"]);
    expect(labels("SELECT * FROM a JOIN ra|")).toEqual(["key_verifications_v1", "ratelimits_v1"]);
  });

  test("query editor suggests functions, keywords, and the columns of the tables in the query", () => {
    const offered = labels("SELECT i| FROM ratelimits_v1");
    expect(offered).toEqual(expect.arrayContaining(["identifier", "sumIf", "INTERVAL"]));
    expect(offered).not.toContain("key_id");
    expect(labels("SELECT k|")).toContain("key_id");
  });

  test("query editor completes the current word; without a word, it suggests completions only on request", () => {
    expect(offersAt("SELECT key", 10, SCHEMA, false)?.from).toBe(7);
    expect(labels("SELECT |", false)).toBeUndefined();
  });

  test.each(["SELECT 'a|", "SELECT 'it\\'s |", "-- se|", "/* se|", 'SELECT "a|', "# a|"])(
    "query editor makes no suggestions in %s",
    (text) => {
      expect(labels(text)).toBeUndefined();
    },
  );

  test.each(["SELECT 'a', k|", "-- x\nSELECT k|", "/* x */ SELECT k|", "SELECT 'it''s', k|"])(
    "query editor makes suggestions again after %s",
    (text) => {
      expect(labels(text)).toContain("key_id");
    },
  );
});

test.each([
  ["SELECT 1 FROM ratelimits_v1", "ratelimits"],
  ["-- FROM ratelimits_v1\nSELECT 1 FROM key_verifications_v1", "verifications"],
  ["with x as (select 1 from `ratelimits_per_day_v1`) select * from x", "ratelimits"],
  ["", "verifications"],
] as const)("procedure of the query %j is derived from its tables: %s", (sql, of) => {
  expect(queryOf(sql)).toBe(of);
});

describe("a query in the fragment", () => {
  test.each(["SELECT 1 -- 50% & more # = +\n\t'ü名🎉'", "", "a=b&q=c"])(
    "query %j is read from the URL fragment as it was written",
    (sql) => {
      expect(readFragment(`#${fragmentOf(sql)}`)).toBe(sql);
    },
  );

  test.each(["", "#", "#main", "#of=verifications", "#q=%E0%A4%A"])("URL fragment %j contains no query", (fragment) => {
    expect(readFragment(fragment)).toBeUndefined();
  });
});
