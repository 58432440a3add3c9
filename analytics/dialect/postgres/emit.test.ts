import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openUsageAnswers, type UsageAnswers } from "../../../test/harness/usage-responses.ts";

/* Each expected value is the result of ClickHouse's engine for the same expression and rows. */

let usage: UsageAnswers;
beforeAll(async () => {
  usage = await openUsageAnswers();
});
afterAll(() => usage.close());

/** Evaluates an expression over one row, the first rate-limit event. */
async function answerTo(expression: string): Promise<unknown> {
  const [row] = await usage.values(`select ${expression} from ratelimits_v1 where identifier = 'alice'`);
  return row?.[0];
}

const responds = (cases: readonly (readonly [string, unknown])[]) =>
  test.each(cases)("analytics query %s emitted for Postgres returns %j", async (expression, expected) =>
    expect(await answerTo(expression)).toEqual(expected),
  );

test("analytics query returns the most used keys of 30 days", async () => {
  const top = `SELECT key_id, SUM(count) AS total FROM key_verifications_per_day_v1
                WHERE time >= now() - INTERVAL 30 DAY AND outcome = 'VALID' GROUP BY key_id ORDER BY total DESC LIMIT 10`;
  expect(await usage.rows(top)).toEqual([
    { key_id: "key_b", total: 2 },
    { key_id: "key_a", total: 1 },
  ]);
});

test.each([" 42", "0x1F", "1_000", "4.0", "", "4x"])("toInt64 rejects column text %j", async (text) => {
  await expect(answerTo(`toInt64(concat('${text}', substring(identifier, 100)))`)).rejects.toThrow(
    "A string cannot be converted to the requested type",
  );
});

test("toInt64 converts column text of digits", async () => {
  expect(await answerTo("toInt64(concat('-042', substring(identifier, 100)))")).toBe(-42);
});

describe("over no rows", () => {
  const none = "from key_verifications_per_day_v1 where count > 5000";
  test.each([
    ["sum(count), min(count), max(key_id), any(tags), max(time), count()", [0, 0, "", [], "1970-01-01T00:00:00Z", 0]],
    ["avg(count), quantile(0.5)(count)", [null, null]],
    ["groupArray(key_id), uniq(key_id)", [[], 0]],
    ["sum(if(count > 1, count, null))", [null]],
  ])("analytics aggregates without rows return their defaults: %s", async (columns, expected) =>
    expect(await usage.values(`select ${columns} ${none}`)).toEqual([expected]),
  );

  test("analytics GROUP BY without rows returns no group", async () => {
    expect(await usage.rows(`select key_id, sum(count) ${none} group by key_id`)).toEqual([]);
  });

  test("scalar analytics subquery without rows is null", async () => {
    expect(await answerTo(`(select max(count) ${none})`)).toBe(0);
    expect(await answerTo(`(select count ${none})`)).toBe(null);
  });
});

describe("numbers", () => {
  responds(
    [
      ["tokens / 2", 1.5],
      ["tokens / 0", null],
      ["0 / 0", null],
      ["-1 / 0 < 0", 1],
      ["tokens % -2", 1],
      ["-tokens % 2", -1],
      ["255 + 1", 256],
      ["toInt64(9223372036854775807) + 1", -9223372036854775808n],
      ["toInt64(5000000000) * toInt64(5000000000)", 6553255926290448384n],
      ["round(2.5)", 2],
      ["round(3.5)", 4],
      ["round(2.345, 2)", 2.35],
      ["round(1.005, 2)", 1],
      ["round(15, -1)", 20],
      ["round(-25, -1)", -30],
      ["floor(27, -1)", 20],
      ["floor(-27, -1)", -30],
      ["ceil(-2.15, 1)", -2.1],
      ["ceil(27, -1)", 30],
      ["toInt64(-3.9)", -3],
      ["toInt32(3000000000)", -1294967296],
      ["toInt64('12') + 1", 13],
      ["abs(remaining)", 7],
    ].map(([text, value]) => [text as string, typeof value === "bigint" ? Number(value) : value] as const),
  );
});

describe("booleans", () => {
  responds([
    ["tokens > 2", 1],
    ["sum(tokens > 2)", 1],
    ["passed", true],
    ["not passed", false],
    ["passed = true", 1],
    ["passed and tokens", true],
    ["not tokens", 0],
    ["passed + 1", 2],
    ["startsWith(identifier, 'al') + 1", 2],
    ["1 in (2, null)", 0],
    ["1 not in (2, null)", 1],
    ["null in (1)", null],
    ["0/0 = 0/0", 0],
    ["0/0 < 1", 0],
    ["nan in (nan)", 1],
    ["exists (select 1 from key_verifications_per_day_v1)", 1],
  ]);
});

describe("times", () => {
  responds([
    ["now()", "2042-06-15T12:00:00Z"],
    ["today() + 1", "2042-06-16T00:00:00Z"],
    ["now() + 1", "2042-06-15T12:00:01Z"],
    ["today() - toDate('2042-06-01')", 14],
    ["now() - toDateTime('2042-06-15 00:00:00')", 43200],
    ["toDate('2042-01-31') + interval 1 month", "2042-02-28T00:00:00Z"],
    ["toDate('2042-01-31') + interval 36 hour", "2042-02-01T12:00:00Z"],
    ["now() - interval 100 year", "1970-01-01T00:00:00Z"],
    ["toDate('1970-01-01') - 1", "2149-06-06T00:00:00Z"],
    ["toStartOfWeek(toDate('2042-06-04'))", "2042-06-01T00:00:00Z"],
    ["toStartOfWeek(toDate('2042-06-01'), 1)", "2042-05-26T00:00:00Z"],
    ["date_trunc('week', toDate('2042-06-01'))", "2042-05-26T00:00:00Z"],
    ["toStartOfQuarter(now())", "2042-04-01T00:00:00Z"],
    ["toStartOfDay(today())", "2042-06-15T00:00:00Z"],
    ["toString(toStartOfMonth(now()))", "2042-06-01"],
    ["toDateTime(time / 1000)", "2042-06-01T10:00:00Z"],
    ["fromUnixTimestamp64Milli(time)", "2042-06-01T10:00:00.123Z"],
    ["toUnixTimestamp64Milli(fromUnixTimestamp64Milli(time)) = time", 1],
    ["toDateTime('2042-06-15 12:00:00+02:00')", "2042-06-15T10:00:00Z"],
    ["toDate('2042-06-15') = toDateTime('2042-06-15 00:00:00')", 1],
    [
      "formatDateTime(now(), '%Y-%m-%d %H:%i:%S|%M %W %a %e|%j %y x')",
      "2042-06-15 12:00:00|June Sunday Sun 15|166 42 x",
    ],
    ["today() >= now()", 0],
    ["today() < now()", 1],
    ["today() + 1 > now()", 1],
    ["now() > today()", 1],
    ["today() >= toStartOfDay(now())", 1],
    ["today() > toStartOfDay(now())", 0],
    ["toStartOfDay(now()) >= today()", 1],
    ["today() < toStartOfDay(now())", 0],
    ["today() <= toStartOfDay(now())", 1],
    ["time > '2042-06-01 10:00:00'", 1],
    ["time < toDate('2042-06-02')", 1],
  ]);
});

describe("texts", () => {
  responds([
    ["length('é')", 2],
    ["substring('abcdef', -3, 2)", "de"],
    ["substring('aéb', 2, 2)", "é"],
    ["substring('abcdef', 2, -2)", "bcd"],
    ["substring('abc', 0)", ""],
    ["lower('ÀB')", "Àb"],
    ["trim('  a\\t ')", "a\t"],
    ["concat('a', 1, 1.0, tokens > 1)", "a111"],
    ["'a' || null", null],
    ["'a%b' like 'a\\\\%b'", 1],
    ["'axb' like 'a\\\\%b'", 0],
    ["'a\\\\Xb' like 'a\\\\Xb'", 1],
    ["endsWith('né', 'é')", 1],
    ["toString(1e20)", "100000000000000000000"],
    ["toString(1e21)", "1e21"],
    ["toString(1e-7)", "1e-7"],
    ["toString(-0.0)", "-0"],
    ["toString(tokens > 2)", "1"],
    ["toString(toDateTime64('2042-01-01 00:00:00.5', 3))", "2042-01-01 00:00:00.500"],
    [`JSONExtractString('{"a":{"b":1.50}}', 'a', 'b')`, "1.5"],
    [`JSONExtractString('{"a":[1, {"b":"c"}]}', 'a')`, '[1,{"b":"c"}]'],
    ["JSONExtractString('nope', 'a')", ""],
    // ClickHouse returns the string; Postgres text cannot contain U+0000.
    [`JSONExtractString('{"a":"x\\\\u0000y"}', 'a')`, ""],
  ]);

  test("analytics query orders text by bytes", async () => {
    const values = await usage.values("select external_id from key_verifications_per_day_v1 order by external_id");
    expect(values.flat()).toEqual(["user_B", "user_a", "ünal"]);
    expect(await usage.values("select min(identifier), max(identifier) from ratelimits_v1")).toEqual([["Bob", "é"]]);
  });
});

describe("arrays", () => {
  responds([
    ["['a', 'b'][-1]", "b"],
    ["['a', 'b'][7]", ""],
    ["hasAll(['a'], [])", 1],
    ["hasAny(['a'], [])", 0],
    ["has([1, 2], 2)", 1],
    ["arrayFilter(x -> x > tokens, [1, 4, 5])", [4, 5]],
    ["arrayFilter(x -> has(arrayFilter(y -> y != x, ['a', 'b']), 'a'), ['a', 'b'])", ["b"]],
    ["[1.5, 2]", [1.5, 2]],
  ]);

  test("arrayJoin drops empty arrays and expands equal expressions once", async () => {
    const text =
      "select key_id, arrayJoin(tags) as tag, arrayJoin(tags) from key_verifications_per_day_v1 order by key_id, tag";
    expect(await usage.values(text)).toEqual([
      ["key_a", "a", "a"],
      ["key_a", "b", "b"],
      ["key_a", "b", "b"],
    ]);
  });

  test("analytics query groups rows by tags", async () => {
    const text =
      "select arrayJoin(tags) as tag, sum(count) from key_verifications_per_day_v1 group by tag order by tag";
    expect(await usage.values(text)).toEqual([
      ["a", 1],
      ["b", 5],
    ]);
  });
});

describe("aggregates", () => {
  test.each([
    ["sum(latency), avg(tokens), sum(passed), countIf(passed), sumIf(tokens, passed)", [4.5, 4, 2, 2, 8]],
    ["min(passed), max(passed)", [false, true]],
    ["quantile(0.95)(tokens), quantile(0.333)(latency)", [4.9, 1.1660000000000001]],
    ["count(distinct passed), uniq(passed, tokens), sum(distinct tokens % 2)", [2, 3, 1]],
    ["sum(tokens) filter (where passed), avg(tokens) filter (where tokens > 90)", [8, null]],
    ["count(if(tokens > 3, 1, null)), groupArray(if(tokens > 4, tokens, null))", [2, [5]]],
    ["max(if(tokens > 4, nan, latency)), sum(if(tokens > 4, nan, latency))", [2.5, null]],
    ["count() - 5, sum(tokens) * 2", [-2, 24]],
  ])("analytics aggregates return the expected values: %s", async (columns, expected) => {
    expect(await usage.values(`select ${columns} from ratelimits_v1`)).toEqual([expected]);
  });
});

describe("order", () => {
  const values = async (text: string) => (await usage.values(text)).flat();

  test("analytics ORDER BY puts null and NaN last in both directions", async () => {
    const ofNull = "select if(tokens = 4, null, tokens) as x from ratelimits_v1 order by x";
    expect(await values(ofNull)).toEqual([3, 5, null]);
    expect(await values(`${ofNull} desc`)).toEqual([5, 3, null]);
    expect(await values(`${ofNull} desc nulls first`)).toEqual([null, 5, 3]);
    const ofNaN = "select if(tokens = 4, nan, latency) as x from ratelimits_v1 order by x";
    expect(await values(ofNaN)).toEqual([0.5, 1.5, null]);
    expect(await values(`${ofNaN} desc`)).toEqual([1.5, 0.5, null]);
  });

  test("analytics SELECT DISTINCT allows ORDER BY expressions of its columns", async () => {
    expect(await values("select distinct passed from ratelimits_v1 order by passed desc")).toEqual([true, false]);
    expect(await values("select distinct tokens from ratelimits_v1 order by -tokens")).toEqual([5, 4, 3]);
  });
});

describe("WITH FILL", () => {
  const DAYS = "select time, sum(count) as n from key_verifications_per_day_v1 group by time order by time";
  const day = (date: number, n: number) => [`2042-06-0${date}T00:00:00Z`, n];

  test("analytics WITH FILL adds rows for missing days", async () => {
    expect(await usage.values(`${DAYS} with fill`)).toEqual([day(1, 1), day(2, 2), day(3, 0), day(4, 0), day(5, 4)]);
  });

  test("analytics WITH FILL excludes the TO value and keeps rows outside the range", async () => {
    const text = `${DAYS} with fill from toDate('2042-06-02') to toDate('2042-06-04')`;
    expect(await usage.values(text)).toEqual([day(1, 1), day(2, 2), day(3, 0), day(5, 4)]);
  });

  test("analytics WITH FILL can fill in descending order, and keeps rows between steps", async () => {
    const text = "select tokens from ratelimits_v1 order by tokens desc with fill from 8 to 0 step -3";
    expect((await usage.values(text)).flat()).toEqual([8, 5, 4, 3, 2]);
  });

  test("analytics WITH FILL fills an empty result, uses defaults and runs before LIMIT", async () => {
    const none = `select toStartOfMonth(time) as m, groupArray(key_id), count() > 0 from key_verifications_per_day_v1
                   where count > 5000 group by m order by m with fill from toDate('2042-01-31') to toDate('2042-05-01') step interval 1 month limit 2`;
    expect(await usage.values(none)).toEqual([
      ["2042-01-31T00:00:00Z", [], 0],
      ["2042-02-28T00:00:00Z", [], 0],
    ]);
  });

  test("analytics WITH FILL fills each group of a preceding sort column separately", async () => {
    const text = `select key_id, time, count from key_verifications_per_day_v1 order by key_id, time with fill to toDate('2042-06-04')`;
    expect(await usage.values(text)).toEqual([
      ["key_a", ...day(1, 1)],
      ["key_a", ...day(2, 0)],
      ["key_a", ...day(3, 0)],
      ["key_a", ...day(5, 4)],
      ["key_b", ...day(2, 2)],
      ["key_b", ...day(3, 0)],
    ]);
  });

  test("analytics WITH FILL works in subqueries and with DISTINCT", async () => {
    expect(await usage.values(`select count(), sum(n) from (${DAYS} with fill)`)).toEqual([[5, 7]]);
    expect(
      (await usage.values("select distinct tokens from ratelimits_v1 order by tokens with fill to 7")).flat(),
    ).toEqual([3, 4, 5, 6]);
  });
});

describe("joins", () => {
  const pairs = (type: string) =>
    usage.values(`select a.key_id, a.n, b.key_id, b.n from (select key_id, sum(count) as n from key_verifications_per_day_v1 where key_id = 'key_a' group by key_id) a
      ${type} join (select key_id, sum(count) as n from key_verifications_per_hour_v1 where key_id = 'key_b' group by key_id) b on a.key_id = b.key_id order by a.key_id`);

  test("analytics outer join fills the empty side with defaults", async () => {
    expect(await pairs("left")).toEqual([["key_a", 5, "", 0]]);
    expect(await pairs("right")).toEqual([["", 0, "key_b", 2]]);
    expect(await pairs("full")).toEqual([
      ["", 0, "key_b", 2],
      ["key_a", 5, "", 0],
    ]);
    expect(await pairs("inner")).toEqual([]);
  });

  test("analytics join with USING merges the two columns into one", async () => {
    const text = `select key_id, n, m from (select key_id, count() as n from key_verifications_per_day_v1 group by key_id) a
      full join (select 'other' as key_id, 7 as m from ratelimits_v1 limit 1) b using (key_id) order by key_id`;
    expect(await usage.values(text)).toEqual([
      ["key_a", 2, 0],
      ["key_b", 1, 0],
      ["other", 0, 7],
    ]);
  });
});

describe("sets and CTEs", () => {
  const values = async (text: string) => (await usage.values(text)).map((row) => row[0]).sort();
  const KEYS = "select key_id from key_verifications_per_day_v1";

  test("analytics EXCEPT removes as many equal rows as the second query returns", async () => {
    expect(await values(`${KEYS} except select 'key_a' from ratelimits_v1 limit 1`)).toEqual(["key_a", "key_b"]);
    expect(await values(`${KEYS} except distinct select 'key_b' from ratelimits_v1`)).toEqual(["key_a"]);
    expect(await values(`${KEYS} union distinct select 'key_b' from ratelimits_v1`)).toEqual(["key_a", "key_b"]);
  });

  test("analytics UNION gives each column a type that can represent the values of both queries", async () => {
    expect(await values("select 1 from ratelimits_v1 limit 1 union all select 1.5 from ratelimits_v1 limit 1")).toEqual(
      [1, 1.5],
    );
  });

  test("analytics CTE can be used twice", async () => {
    const text = `with days as (select key_id, sum(count) as n from key_verifications_per_day_v1 group by key_id)
      select a.n + b.n from days a join days b on a.key_id = b.key_id order by 1`;
    expect((await usage.values(text)).flat()).toEqual([4, 10]);
  });

  test("analytics IN subquery ignores null", async () => {
    expect(
      await values(
        "select tokens from ratelimits_v1 where tokens in (select count + 1 from key_verifications_per_day_v1)",
      ),
    ).toEqual([3, 5]);
    const withNull = "select if(count = 1, null, count) from key_verifications_per_day_v1";
    expect(await values(`select tokens from ratelimits_v1 where tokens not in (${withNull})`)).toEqual([3, 5]);
  });
});

test("analytics window functions support frames, and return default values outside the partition", async () => {
  const text = `select tokens, lag(tokens) over w, lead(tokens, 1, 9) over w, row_number() over w, sum(tokens) over (order by tokens rows between 1 preceding and current row),
      max(tokens) over (order by tokens rows between unbounded preceding and 1 preceding), first_value(identifier) over w, avg(tokens) over ()
    from ratelimits_v1 window w as (order by tokens) order by tokens`;
  expect(await usage.values(text)).toEqual([
    [3, 0, 4, 1, 3, 0, "alice", 4],
    [4, 3, 5, 2, 7, 3, "alice", 4],
    [5, 4, 9, 3, 9, 4, "alice", 4],
  ]);
});

describe("what Postgres cannot compute identically", () => {
  test.each([
    "1.5 % 2",
    "18446744073709551615",
    "identifier ilike 'É'",
    "'a' like identifier",
    "groupArray(['a'])",
    "quantile(0.5)(now())",
    "toString(['a'])",
    "now() + interval 1 nanosecond",
    "formatDateTime(now(), '%z')",
    "toDateTime64(now(), 6)",
    "uniq(tokens) over ()",
    "'a\\0b'",
  ])("analytics expression %s is rejected with its position on Postgres", async (expression) => {
    await expect(usage.rows(`select ${expression} from ratelimits_v1`)).rejects.toMatchObject({
      name: "QueryProblem",
      kind: "invalid_analytics_query",
      span: { start: expect.any(Number) },
    });
  });

  test("nested analytics calls that format a time are limited in size", async () => {
    const nested = Array.from({ length: 5 }).reduce<string>(
      (timestamp) => `toDateTime(toInt64(formatDateTime(${timestamp}, '${"%S".repeat(200)}')))`,
      "now()",
    );
    await expect(usage.rows(`select ${nested} from ratelimits_v1`)).rejects.toThrow("this formatDateTime is too long");
  });

  test("converting non-numeric text to a number is an analytics query error", async () => {
    await expect(usage.rows("select toInt64(identifier) from ratelimits_v1")).rejects.toMatchObject({
      reason: "query",
    });
    expect(await answerTo("toInt64(toString(tokens)) + toFloat64(toString(latency))")).toBe(4.5);
  });
});
