import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PARSED_QUERIES } from "../../test/analytics/parsed-queries.ts";
import { printQuery } from "../../test/analytics/print-query.ts";
import { parse } from "./parse.ts";
import { explainProblem, QueryProblem } from "./problem.ts";

/** Returns the parser's first problem, or the first problem of a later rule. */
function problemOf(text: string): string {
  try {
    const [first] = parse(text).refused;
    return first === undefined ? "no problem" : `${first.problem.kind}: ${explainProblem(first.problem, text)}`;
  } catch (error) {
    if (error instanceof QueryProblem) return `${error.kind}: ${explainProblem(error, text)}`;
    throw error;
  }
}

describe("supported queries", () => {
  test.each(PARSED_QUERIES)("analytics SQL parser accepts %s", (text, printed) => {
    const { query, refused } = parse(text);
    expect(printQuery(query)).toBe(printed);
    expect(refused).toEqual([]);
  });

  test.each(PARSED_QUERIES)("printed analytics query parses to the same tree: %s", (_, printed) => {
    expect(printQuery(parse(printed).query)).toBe(printed);
  });

  test("each analytics syntax node has its source position", () => {
    const { query } = parse("select\n  sum(a) over (order by b) as c\nfrom t");
    expect(query).toMatchObject({
      span: { start: 0, end: 45 },
      columns: [
        { kind: "aliased", span: { start: 9, end: 38 }, expression: { kind: "call", span: { start: 9, end: 33 } } },
      ],
      from: { span: { start: 44, end: 45 } },
    });
  });
});

describe("unsupported ClickHouse syntax", () => {
  test.each([
    ["select a from t array join x", 29, "ARRAY JOIN needs AS with a name for the element"],
    ["select a from t left array join x y", 35, "ARRAY JOIN needs AS with a name for the element"],
    ["select a from t array join x as y, z as w", 34, "ARRAY JOIN of several arrays is not served"],
    ["select a from t array join x as y array join z as w", 35, "a join after ARRAY JOIN is not served"],
    ["select a from t array join x as y join u using a", 35, "a join after ARRAY JOIN is not served"],
    ["select a from t asof join s on a=b", 17, "ASOF JOIN is not served"],
    ["select a from t left any join s on a=b", 22, "ANY JOIN is not served"],
    ["select a from t global join s on a=b", 17, "GLOBAL JOIN is not served"],
    ["select a from t semi join s on a=b", 17, "SEMI JOIN is not served"],
    ["select a from t natural join s", 17, "NATURAL JOIN is not served"],
    ["select a from t paste join s", 17, "PASTE JOIN is not served"],
    ["select a from t join s on a = b using (a)", 33, "the end of the query is expected, not `using`"],
    ["select a from t join s using a, b", 31, "several columns after USING need parentheses"],
    ["select a from t final", 17, "FINAL is not served"],
    ["select a from t sample 0.1", 17, "SAMPLE is not served"],
    ["select a from t prewhere c", 17, "PREWHERE is not served"],
    ["select a from t qualify x", 17, "QUALIFY is not served"],
    ["select a from t group by a with totals", 28, "GROUP BY with ROLLUP, CUBE or TOTALS is not served"],
    ["select a from t group by rollup(a)", 26, "ROLLUP is not served"],
    ["select a from t group by cube(a)", 26, "CUBE is not served"],
    ["select a from t group by grouping sets ((a))", 26, "GROUPING SETS is not served"],
    ["select a from t group by all", 26, "GROUP BY ALL is not served"],
    ["select a from t order by all", 26, "ORDER BY ALL is not served"],
    ["select a from t order by a collate 'en'", 28, "COLLATE is not served"],
    ["select a from t order by a with fill staleness 2", 38, "STALENESS is not served"],
    ["select a from t order by a with fill interpolate (b)", 38, "INTERPOLATE is not served"],
    ["select a from t limit 1 by all", 28, "LIMIT BY ALL is not served"],
    ["select a from t offset 1 by a", 26, "the end of the query is expected, not `by`"],
    ["select a from t limit 1 by a offset 2", 30, "the end of the query is expected, not `offset`"],
    ["select a from t limit 1 by a limit 2 by b", 38, "the end of the query is expected, not `by`"],
    ["select a from t limit 1 with ties by a", 25, "WITH TIES is not served"],
    ["select a from t limit 1 by a limit 2 with ties", 38, "WITH TIES is not served"],
    ["select a from t limit 1 with ties", 25, "WITH TIES is not served"],
    ["select a from t offset 2 rows fetch next 3 rows only", 26, "FETCH is not served"],
    ["select a from t limit -1", 23, "a whole number after LIMIT is expected, not `-`"],
    ["select a from t limit 0.5", 23, "a whole number after LIMIT is expected, not `0.5`"],
    [
      "select a from t limit 9223372036854775808",
      23,
      "a whole number after LIMIT is expected, not `9223372036854775808`",
    ],
    ["select a from t settings max_threads=1", 17, "SETTINGS is not served"],
    ["select a from t format JSON", 17, "FORMAT is not served"],
    ["select a from t into outfile '/tmp/x'", 17, "INTO OUTFILE is not served"],
    ["select distinct on (a) b from t", 17, "DISTINCT ON is not served"],
    ["select top 5 a from t", 8, "TOP is not served"],
    ["select * except (a) from t", 10, "`*` with EXCEPT is not served"],
    ["select t.* replace (1 as a) from t", 12, "`*` with REPLACE is not served"],
    ["select * apply (sum) from t", 10, "`*` with APPLY is not served"],
    ["select columns('a') from t", 8, "COLUMNS(…) is not served"],
    ["select f(*) from t", 10, "`*` stands in SELECT and in `count(*)` alone"],
    ["select (1, 2) from t", 10, "a tuple is not served"],
    ["select () from t", 8, "an empty tuple is not served"],
    ["select a.1 from t", 9, "the element of a tuple is not served"],
    ["select (a).b from t", 11, "the element of a tuple is not served"],
    ["select a.b.c from t", 11, "a name has at most two parts: the table's and the column's"],
    ["select a ? b : c from t", 10, "the operator ? is not served"],
    ["select a <=> b from t", 10, "the operator <=> is not served"],
    ["select a div b from t", 10, "the operator DIV is not served"],
    ["select a regexp 'x' from t", 10, "the operator REGEXP is not served"],
    ["select a global in (1) from t", 10, "the operator GLOBAL is not served"],
    ["select x -> 1 from t", 10, "the operator -> is not served"],
    ["select a is true from t", 13, "IS with anything but NULL is not served"],
    ["select a is distinct from b from t", 13, "IS with anything but NULL is not served"],
    ["select a between not b and c from t", 18, "a NOT after BETWEEN needs parentheses"],
    ["select {a:String} from t", 8, "a query parameter is not served"],
    ["select a from {a:Identifier}", 15, "a query parameter is not served"],
    ["select a = any(select 1) from t", 16, "a subquery as an argument needs parentheses of its own"],
    ["select sum(a) ignore nulls from t", 15, "RESPECT NULLS or IGNORE NULLS is not served"],
    ["select sum(a) over (w order by b) from t", 21, "a window that is made from another one is not served"],
    ["select sum(a) over (groups current row) from t", 21, "a frame of GROUPS is not served"],
    ["select a::double precision from t", 18, "a type of several words is not served"],
    ["select cast(a, 'Array(') from t", 16, "`Array(` is not a type: a type is expected, not the end of the query"],
    ["select cast(a, b) from t", 17, "the type of CAST is a string or stands after AS"],
    ["select interval '7 day 3 hour' from t", 32, "a unit after `INTERVAL`, such as DAY, is expected, not `from`"],
    ["select a from t union select b from t", 17, "UNION needs ALL or DISTINCT after it"],
    ["select a from t intersect select b from t", 17, "INTERSECT is not served"],
    ["with recursive a as (select 1 from t) select 1 from a", 6, "WITH RECURSIVE is not served"],
    ["with a as materialized (select 1 from t) select 1 from a", 11, "MATERIALIZED is not served"],
    ["select a from (t join s on a = b)", 16, "SELECT is expected, not `t`"],
    ["select a from t as x(c)", 21, "names for the columns of a table are not served"],
    ["select a from 't'", 15, "a table is expected, not `t`"],
    ["from t select a", 1, "SELECT stands before FROM"],
    ["select a in () from t", 13, "the list after IN is empty"],
    ["select case a end from t", 15, "WHEN is expected, not `end`"],
    ["", 1, "the query is empty"],
    [" -- nothing", 12, "the query is empty"],
    [";", 1, "SELECT is expected, not `;`"],
    ["select a from t; select b from t", 18, "only one statement can be run at a time"],
    ["drop table t; select a from t", 15, "only one statement can be run at a time"],
    ["select a from t where (a", 25, "`)` is expected, not the end of the query"],
    ["select a from t)", 16, "the end of the query is expected, not `)`"],
    ["select E'a' from t", 9, "the end of the query is expected, not `a`"],
    ["select a from t where a = 'x' or 1 = 1 --' ", 44, "no problem"],
  ])("analytics SQL parser rejects a query with the error position: %s", (text, column, detail) => {
    const expected = detail === "no problem" ? detail : `invalid_analytics_query: Line 1, column ${column}: ${detail}`;
    expect(problemOf(text)).toBe(expected);
  });

  test.each([
    "show tables",
    "DROP TABLE t",
    "insert into t values (1)",
    "with a as (select 1 from t) insert into t select 1",
    "explain select 1 from t",
    "alter table t delete where 1",
    "system shutdown;",
    "set a = 1",
    "kill query where 1",
  ])("analytics SQL parser rejects every statement except SELECT: %s", (text) => {
    expect(problemOf(text)).toMatch(/^invalid_analytics_query_type: .*only SELECT can be run$/);
  });

  test.each([
    [
      "select a from db.t",
      "invalid_analytics_table: Line 1, column 15: a table's name stands alone, without a database before it",
    ],
    [
      "select a from system.numbers(1)",
      "invalid_analytics_table: Line 1, column 15: a table's name stands alone, without a database before it",
    ],
    [
      "select a from url('http://x', CSV)",
      "invalid_analytics_function: Line 1, column 15: functions that return tables are not offered",
    ],
    [
      "select a from view(select 1 from t)",
      "invalid_analytics_function: Line 1, column 15: functions that return tables are not offered",
    ],
    [
      "select a in 1 from t",
      "invalid_analytics_query: Line 1, column 13: after IN, a list of literals or a subquery in parentheses is expected",
    ],
    [
      "select a in u from t",
      "invalid_analytics_query: Line 1, column 13: after IN, a list of literals or a subquery in parentheses is expected",
    ],
    [
      "select a in (1) + 1 from t",
      "invalid_analytics_query: Line 1, column 13: after IN, a list of literals or a subquery in parentheses is expected",
    ],
    ["select 1", "invalid_analytics_query: Line 1, column 9: each SELECT needs a FROM"],
  ])("analytics SQL parser leaves the error to a later check: %s", (text, problem) => {
    expect(problemOf(text)).toBe(problem);
  });
});

/** Inputs of 16 KiB that nest, repeat or leave a construct unclosed. */
const HOSTILE: readonly (readonly [string, string])[] = [
  ["(", "select "],
  ["((select ", "select "],
  ["(select a from ", "select a from "],
  ["[", "select "],
  ["a[", "select "],
  ["not ", "select "],
  ["- ", "select "],
  ["+ ", "select "],
  ["a.", "select "],
  ["a + ", "select "],
  ["a -> ", "select f("],
  ["f(x -> ", "select "],
  ["f(", "select "],
  ["f(a)(", "select "],
  ["case when ", "select "],
  ["interval ", "select "],
  ["cast(", "select "],
  ["::Array(", "select a"],
  ["::a", "select a"],
  ["[1]", "select a"],
  ["a as ", "select "],
  ["a between ", "select "],
  ["a in (", "select "],
  ["a is null ", "select "],
  ["a like ", "select "],
  ["with a as (", ""],
  ["union all select ", "select a from t "],
  ["join t on a ", "select a from t "],
  ["(((a, b, ", "select f("],
  ["/*", "select a "],
  ["/* */", "select a "],
  ["'", "select "],
  ["$a$ $b$ ", "select "],
  ["$a$$b$", "select "],
  ["\\", "select '"],
  ["1_", "select "],
  ["exists(", "select "],
  ["over (", "select f() "],
  [";", "select a from t"],
  ["x,", "select f(("],
  ["💣", "select '"],
  ["\n", "select a"],
];

describe("hostile texts", () => {
  test.each(HOSTILE)("analytics SQL parser finishes quickly on 16 KiB of %j", (part, prefix) => {
    const text = prefix + part.repeat(16_384 / part.length);
    const startedMs = performance.now();
    problemOf(text);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  const words = PARSED_QUERIES.flatMap(([text]) => text.match(/\w+|\s+|[^\w\s]/g) ?? []);

  test("analytics SQL parser parses or rejects words in any order without crashing", () => {
    const soup = fc.array(fc.constantFrom(...words, "'", '"', "`", "$$", "--", "/*", "\\", "\0", "é"), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(soup, (parts) => {
        expect(problemOf(`select ${parts.join("")}`)).toBeTypeOf("string");
      }),
      { numRuns: 3_000 },
    );
  });

  test("analytics SQL parser does not crash on mutated queries, and accepted ones print and parse to the same tree", () => {
    const change = fc.record({
      query: fc.constantFrom(...PARSED_QUERIES.map(([text]) => text)),
      at: fc.nat(400),
      cut: fc.nat(6),
      insert: fc.constantFrom(...words, ""),
    });
    fc.assert(
      fc.property(change, ({ query, at, cut, insert }) => {
        const place = at % query.length;
        const text = query.slice(0, place) + insert + query.slice(place + cut);
        if (problemOf(text) !== "no problem") return;
        const printed = printQuery(parse(text).query);
        expect(printQuery(parse(printed).query)).toBe(printed);
      }),
      { numRuns: 3_000 },
    );
  });
});
