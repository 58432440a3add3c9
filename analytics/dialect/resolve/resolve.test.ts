import { describe, expect, test } from "vitest";
import { parse } from "../parse.ts";
import { QueryProblem } from "../problem.ts";
import { resolveQuery } from "./resolve.ts";
import type { ResolvedExpression, ResolvedSelect } from "./resolved.ts";
import { typeText } from "./types.ts";

const resolved = (text: string) => resolveQuery({ query: parse(text).query, text });

function select(text: string): ResolvedSelect {
  const { body } = resolved(text);
  if (body.kind !== "select") throw new Error("is no SELECT");
  return body;
}

/** Formats an expression briefly: function names and columns. */
function shape(expression: ResolvedExpression | undefined): string {
  if (expression === undefined) return "";
  switch (expression.kind) {
    case "literal":
      return String(expression.value);
    case "column":
      return `t${expression.source}.${expression.index}`;
    case "call":
    case "aggregate":
      return `${expression.name}(${expression.arguments.map(shape).join(", ")})`;
    case "arrayJoin":
      return `arrayJoin ${expression.index}`;
    default:
      return expression.kind;
  }
}

const columnsOf = (text: string) => select(text).columns.map(shape);
const typesOf = (text: string) => select(text).types.map(typeText);

function problemOf(text: string): string {
  try {
    resolved(text);
  } catch (error) {
    if (!(error instanceof QueryProblem)) throw error;
    expect(error.kind).toBe("invalid_analytics_query");
    return `${error.detail} «${text.slice(error.span.start, error.span.end)}»`;
  }
  throw new Error("was not refused");
}

const DAYS = "key_verifications_per_day_v1";
// Columns are shown by index: 0 time, 3 key_id, 5 outcome, 9 spent_credits, 10 count.

describe("an alias", () => {
  test("analytics alias shadows the column of the same name in every clause", () => {
    const { columns, where } = select(`select spent_credits as count, count + 1 from ${DAYS} where count > 2`);
    expect(columns.map(shape)).toEqual(["t0.9", "plus(t0.9, 1)"]);
    expect(shape(where)).toBe("greater(t0.9, 2)");
  });

  test("inside the definition of an analytics alias, the alias's name refers to the column", () => {
    expect(columnsOf(`select sum(count) as count from ${DAYS}`)).toEqual(["sum(t0.10)"]);
    expect(columnsOf(`select lower(key_id) as key_id, key_id || 'x' as k from ${DAYS}`)).toEqual([
      "lower(t0.3)",
      "concat(lower(t0.3), x)",
    ]);
  });

  test("analytics alias is usable before and within the expression that defines it", () => {
    expect(columnsOf(`select x + 1, count as x from ${DAYS}`)).toEqual(["plus(t0.10, 1)", "t0.10"]);
    expect(columnsOf(`select (count as x) + 1, x from ${DAYS}`)).toEqual(["plus(t0.10, 1)", "t0.10"]);
  });

  test("analytics alias does not shadow a column qualified by its table", () => {
    expect(columnsOf(`select spent_credits as count, ${DAYS}.count from ${DAYS}`)).toEqual(["t0.9", "t0.10"]);
  });

  test("analytics WITH alias is visible in SELECT, and in subqueries if constant", () => {
    expect(columnsOf(`with count * 2 as twice select twice from ${DAYS}`)).toEqual(["multiply(t0.10, 2)"]);
    const inside = select(`with 7 as n select x from (select n as x from ${DAYS})`).from;
    expect(inside.kind === "derived" && inside.body.kind === "select" && inside.body.columns.map(shape)).toEqual(["7"]);
  });

  test.each([
    [`select a as b, b as a from ${DAYS}`, "the alias b leads back to itself «b»"],
    [`select key_id as count, count as key_id from ${DAYS}`, "the alias count leads back to itself «count»"],
    [`select nothing as nothing from ${DAYS}`, "there is no column nothing here «nothing»"],
    [`select count as x, key_id as x from ${DAYS}`, "the alias x is defined twice, differently «key_id as x»"],
    [
      `select count() as c from ${DAYS} where c > 1`,
      "an aggregate function cannot be used in WHERE, GROUP BY or arrayJoin «count()»",
    ],
    [
      `select sum(count) as count, avg(count) from ${DAYS}`,
      "an aggregate function cannot be used within another «sum(count)»",
    ],
  ])("analytics alias cycle %s is rejected", (text, problem) => expect(problemOf(text)).toBe(problem));

  test("exponentially growing analytics aliases are rejected quickly", () => {
    const doubled = Array.from({ length: 60 }, (_, index) => `a${index} + a${index} as a${index + 1}`);
    expect(problemOf(`select count as a0, ${doubled.join(", ")} from ${DAYS}`)).toMatch(/more than 10000 expressions/);
  });
});

describe("positions", () => {
  test("numbers in analytics GROUP BY and ORDER BY refer to columns by position", () => {
    const { groupBy, orderBy } = select(`select key_id, sum(count) from ${DAYS} group by 1 order by 2 desc`);
    expect(groupBy.map(shape)).toEqual(["t0.3"]);
    expect(orderBy.map(({ expression }) => shape(expression))).toEqual(["sum(t0.10)"]);
  });

  test.each([
    [`select key_id from ${DAYS} order by 2`, "there is no column 2 «2»"],
    [
      `select key_id, count() from ${DAYS} group by 2`,
      "an aggregate function cannot be used in WHERE, GROUP BY or arrayJoin «count()»",
    ],
  ])("analytics column position %s is rejected", (text, problem) => expect(problemOf(text)).toBe(problem));
});

describe("types", () => {
  test.each([
    [
      "1 + 1, 1 - 2, count + 1, count + 1.5, count / 2, count % 2, -1, -count",
      "UInt16 Int16 Int64 Float64 Float64 Int16 Int8 Int64",
    ],
    [
      "if(count = 1, 1, -1), if(count = 1, today(), now()), case when count = 1 then 2 end",
      "Int16 DateTime Nullable(UInt8)",
    ],
    ["count = 1, not count, true and count, null, coalesce(null, count)", "UInt8 UInt8 Bool Nullable(Nothing) Int64"],
    ["time + 1, time + interval 1 hour, time + interval 1 month, time - time", "Date DateTime Date Int32"],
    [
      "toStartOfDay(time), toStartOfMonth(time), date_trunc('week', now()), now64()",
      "DateTime Date Date DateTime64(3)",
    ],
    [
      "toStartOfDay(now(), 'Asia/Tokyo'), toDateTime64(time, 3, 'Asia/Tokyo'), toDateTime(now(), 'Asia/Tokyo') + interval 1 day, toStartOfHour(toDateTime(now(), 'Asia/Tokyo'), 'UTC')",
      "DateTime('Asia/Tokyo') DateTime64(3, 'Asia/Tokyo') DateTime('Asia/Tokyo') DateTime",
    ],
    [
      "[1, -1], ['a', null], [], tags[1], tags",
      "Array(Int16) Array(Nullable(String)) Array(Nullable(Nothing)) String Array(String)",
    ],
    ["round(count), round(1.5), abs(count), length(key_id), toString(count)", "Int64 Float64 UInt64 UInt64 String"],
  ])("analytics columns %s have the types of ClickHouse", (columns, types) =>
    expect(typesOf(`select ${columns} from ${DAYS}`).join(" ")).toBe(types),
  );

  test.each([
    [
      "sum(count), sum(count > 1), sum(1.5), avg(count), min(time), any(tags)",
      "Int64 UInt64 Float64 Float64 Date Array(String)",
    ],
    ["count(), uniq(key_id), groupArray(count), quantile(0.5)(count)", "UInt64 UInt64 Array(Int64) Float64"],
    ["sum(if(count = 1, count, null)), groupArray(if(count = 1, count, null))", "Nullable(Int64) Array(Int64)"],
  ])("analytics aggregates %s have the types of ClickHouse", (columns, types) =>
    expect(typesOf(`select ${columns} from ${DAYS}`).join(" ")).toBe(types),
  );

  test.each([
    ["key_id = 5", "String and UInt8 cannot be compared"],
    ["time = 5", "Date and UInt8 cannot be compared"],
    ["time > 'soon'", "'soon' is not a date as 2024-01-31 or a time as 2024-01-31 23:59:59"],
    ["key_id + 1", "+ is not defined for String and UInt8"],
    ["if(count, 1, 2)", "a condition is a comparison or a Bool, not Int64"],
    ["if(count = 1, 'a', 1)", "no type holds String and UInt8"],
    ["now() - today()", "- is not defined for DateTime and Date"],
    ["lower(count)", "lower takes a String here, not Int64"],
    ["toStartOfHour(time)", "toStartOfHour takes a DateTime here, not Date"],
    ["nothing", "there is no column nothing here"],
    ["tags[0]", "the elements of an array are counted from 1"],
    ["toStartOfDay(now(), 'Asia/Nowhere')", "'Asia/Nowhere' is not a time zone, such as 'Europe/Berlin'"],
    ["toStartOfDay(now(), key_id)", "toStartOfDay takes a string literal here"],
    ["toMonth(time, 'Asia/Tokyo')", "a time zone needs a DateTime, not Date"],
    ["if(count = 1, now(), toDateTime(now(), 'Asia/Tokyo'))", "no type holds DateTime and DateTime('Asia/Tokyo')"],
    ["toDateTime(now(), 'Asia/Tokyo') in (time)", "IN compares no DateTime('Asia/Tokyo') with Date"],
    [
      "dateDiff('day', time, toDateTime(now(), 'Asia/Tokyo'))",
      "dateDiff of times in several zones needs a zone as its last argument",
    ],
  ])("analytics expression %s has a type error", (column, problem) =>
    expect(problemOf(`select ${column} from ${DAYS}`)).toContain(`${problem} «`),
  );
});

describe("time of a raw table", () => {
  const where = (condition: string, table = "key_verifications_v1") =>
    shape(select(`select 1 from ${table} where ${condition}`).where);

  test("column `time` of raw events is compared in ms with dates, date-times and strings", () => {
    const ms = (date: string) => `toUnixTimestamp64Milli(toDateTime64(${date}))`;
    expect(where("time >= now()")).toBe(`greaterOrEquals(t0.0, ${ms("now()")})`);
    expect(where("today() < time")).toBe(`less(${ms("today()")}, t0.0)`);
    expect(where("time > '2042-01-02'")).toBe(
      "greater(t0.0, toUnixTimestamp64Milli(toDateTime64(2042-01-02 00:00:00.000)))",
    );
    expect(where("t > today()", "(select max(time) as t from key_verifications_v1)")).toBe(
      `greater(t0.0, ${ms("today()")})`.replaceAll("t0", "t1"),
    );
  });

  test("raw event time is compared with numbers as a number, and bucket time is compared with dates", () => {
    expect(where("time > 5")).toBe("greater(t0.0, 5)");
    expect(where("time > '2042-01-02'", DAYS)).toBe("greater(t0.0, 2042-01-02)");
  });
});

describe("grouping", () => {
  test("ungrouped analytics column must be aggregated", () => {
    expect(columnsOf(`select upper(key_id) as k, count() from ${DAYS} group by key_id`)).toEqual([
      "upper(t0.3)",
      "count()",
    ]);
    expect(problemOf(`select upper(key_id), count() from ${DAYS} group by lower(key_id)`)).toContain(
      "neither aggregated nor in GROUP BY «key_id»",
    );
    expect(problemOf(`select key_id from ${DAYS} group by key_id having count > 1`)).toContain("«count»");
    expect(problemOf(`select key_id, count() from ${DAYS}`)).toContain("«key_id»");
  });

  test("equal arrayJoin expressions in an analytics query are one expression", () => {
    const body = select(`select arrayJoin(tags) as tag, arrayJoin(tags), arrayJoin([1]) from ${DAYS} where tag = 'a'`);
    expect(body.columns.map(shape)).toEqual(["arrayJoin 0", "arrayJoin 0", "arrayJoin 1"]);
    expect(body.arrayJoins).toHaveLength(2);
  });
});

describe("joins", () => {
  const JOINED = `${DAYS} a join key_verifications_per_hour_v1 b on a.key_id = b.key_id`;

  test("unqualified analytics column refers to the first joined table", () => {
    const { body, names } = resolved(`select key_id, a.count, b.count, b.count + 1 from ${JOINED}`);
    expect(body.kind === "select" && body.columns.map(shape)).toEqual(["t0.3", "t0.10", "t1.10", "plus(t1.10, 1)"]);
    expect(names).toEqual(["key_id", "count", "b.count", "plus(b.count, 1)"]);
  });

  test("ambiguous analytics column in a join of three tables is qualified, even a column of the first table", () => {
    const days = `(select key_id, count from ${DAYS})`;
    const three = `${days} a join (select key_id, 2 as m from ${DAYS}) b on a.key_id = b.key_id join ${days} c on b.key_id = c.key_id`;
    expect(resolved(`select a.key_id, a.count, b.m, c.count from ${three}`).names).toEqual([
      "a.key_id",
      "a.count",
      "m",
      "c.count",
    ]);
  });

  test("analytics USING merges the columns of two tables into one", () => {
    const { names } = resolved(
      `select * from (select key_id, count from ${DAYS}) a left join (select key_id, time from ${DAYS}) b using (key_id)`,
    );
    expect(names).toEqual(["key_id", "count", "time"]);
  });

  test("analytics query that joins two tables of the same name is rejected", () => {
    expect(problemOf(`select 1 from ${DAYS} join ${DAYS} on 1 = 1`)).toContain("give them aliases");
  });
});

describe("CTEs", () => {
  test("analytics CTEs are resolved once in dependency order", () => {
    const { common, body } = resolved(
      `with x as (select count as c from ${DAYS}), y as (select c + 1 as d from x) select a.d from y a join y b on a.d = b.d`,
    );
    expect(common).toHaveLength(2);
    expect(body.kind === "select" && body.from.kind === "join" && [body.from.left, body.from.right]).toMatchObject([
      { kind: "common", index: 1 },
      { kind: "common", index: 1 },
    ]);
  });

  test("analytics CTE cannot refer to itself", () => {
    expect(problemOf("with x as (select * from x) select * from x")).toBe("there is no table x «x»");
  });
});

test("analytics result column without an alias is named as in ClickHouse", () => {
  const names = (columns: string, rest = "") => resolved(`select ${columns} from ${DAYS} ${rest}`).names;
  expect(
    names("SUM(count), COUNT(*), count(distinct key_id), sum(count) filter (where count > 1), quantile(0.5)(count)"),
  ).toEqual([
    "SUM(count)",
    "COUNT()",
    "countDistinct(key_id)",
    "sumIf(count, greater(count, 1))",
    "quantile(0.5)(count)",
  ]);
  expect(
    names("count+1, count > 1 and count < 5 and count != 3, 'it''s', 1e3, -1, -count, null, [1, 1.5], tags[1]"),
  ).toEqual([
    "plus(count, 1)",
    "and(greater(count, 1), less(count, 5), notEquals(count, 3))",
    "'it\\'s'",
    "1000.",
    "-1",
    "negate(count)",
    "NULL",
    "[1., 1.5]",
    "arrayElement(tags, 1)",
  ]);
  expect(
    names(
      "case when count > 1 then 'a' end, count::String, now() - interval 1 day, key_id in ('a', 'b'), trim(key_id)",
    ),
  ).toEqual([
    "multiIf(greater(count, 1), 'a', NULL)",
    "CAST(count, 'String')",
    "minus(now(), toIntervalDay(1))",
    "in(key_id, ('a', 'b'))",
    "trimBoth(key_id)",
  ]);
  const one = `(select 1 from ${DAYS} limit 1)`;
  expect(names(`${one} + 1, count in ${one}, ${one} as x, ${one}`)).toEqual([
    "plus(_subquery_1, 1)",
    "in(count, _subquery_2)",
    "x",
    "_subquery_4",
  ]);
  expect(names("sum(count) over (partition by key_id order by time rows between 1 preceding and current row)")).toEqual(
    ["sum(count) OVER (PARTITION BY key_id ORDER BY time ASC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"],
  );
});
