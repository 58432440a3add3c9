import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openUsageAnswers, type UsageAnswers } from "../../../../test/harness/usage-answers.ts";

/*
 * Each answer is what ClickHouse's engine gives for the same expression over the same rows.
 */

let usage: UsageAnswers;
beforeAll(async () => {
  usage = await openUsageAnswers();
});
afterAll(() => usage.close());

/** The value of an expression over one row: of the first rate-limit event. */
async function answerTo(expression: string): Promise<unknown> {
  const [row] = await usage.values(`select ${expression} from ratelimits_v1 where identifier = 'alice'`);
  return row?.[0];
}

const answers = (cases: readonly (readonly [string, unknown])[]) =>
  test.each(cases)("%s is %j", async (expression, expected) => expect(await answerTo(expression)).toEqual(expected));

test("the keys with the most usage of 30 days", async () => {
  const top = `SELECT key_id, SUM(count) AS total FROM key_verifications_per_day_v1
                WHERE time >= now() - INTERVAL 30 DAY AND outcome = 'VALID' GROUP BY key_id ORDER BY total DESC LIMIT 10`;
  expect(await usage.rows(top)).toEqual([
    { key_id: "key_b", total: 2 },
    { key_id: "key_a", total: 1 },
  ]);
});

test.each([" 42", "0x1F", "1_000", "4.0", "", "4x"])("toInt64 of a column's text %j is refused", async (text) => {
  await expect(answerTo(`toInt64(concat('${text}', substring(identifier, 100)))`)).rejects.toThrow(
    "A text is not a value of the type",
  );
});

test("toInt64 of a column's text of digits", async () => {
  expect(await answerTo("toInt64(concat('-042', substring(identifier, 100)))")).toBe(-42);
});

describe("over no rows", () => {
  const none = "from key_verifications_per_day_v1 where count > 5000";
  test.each([
    ["sum(count), min(count), max(key_id), any(tags), max(time), count()", [0, 0, "", [], "1970-01-01T00:00:00Z", 0]],
    ["avg(count), quantile(0.5)(count)", [null, null]],
    ["groupArray(key_id), uniq(key_id)", [[], 0]],
    ["sum(if(count > 1, count, null))", [null]],
  ])("%s", async (columns, expected) => expect(await usage.values(`select ${columns} ${none}`)).toEqual([expected]));

  test("a group has no row at all", async () => {
    expect(await usage.rows(`select key_id, sum(count) ${none} group by key_id`)).toEqual([]);
  });

  test("a subquery that is a value is null", async () => {
    expect(await answerTo(`(select max(count) ${none})`)).toBe(0);
    expect(await answerTo(`(select count ${none})`)).toBe(null);
  });
});

describe("numbers", () => {
  answers(
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

describe("truth", () => {
  answers([
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
  answers([
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
    ["time > '2042-06-01 10:00:00'", 1],
    ["time < toDate('2042-06-02')", 1],
  ]);
});

describe("texts", () => {
  answers([
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
  ]);

  test("are ordered by bytes", async () => {
    const values = await usage.values("select external_id from key_verifications_per_day_v1 order by external_id");
    expect(values.flat()).toEqual(["user_B", "user_a", "ünal"]);
    expect(await usage.values("select min(identifier), max(identifier) from ratelimits_v1")).toEqual([["Bob", "é"]]);
  });
});

describe("arrays", () => {
  answers([
    ["['a', 'b'][-1]", "b"],
    ["['a', 'b'][7]", ""],
    ["hasAll(['a'], [])", 1],
    ["hasAny(['a'], [])", 0],
    ["has([1, 2], 2)", 1],
    ["arrayFilter(x -> x > tokens, [1, 4, 5])", [4, 5]],
    ["arrayFilter(x -> has(arrayFilter(y -> y != x, ['a', 'b']), 'a'), ['a', 'b'])", ["b"]],
    ["[1.5, 2]", [1.5, 2]],
  ]);

  test("arrayJoin drops empty arrays, and the same expression is expanded once", async () => {
    const text =
      "select key_id, arrayJoin(tags) as tag, arrayJoin(tags) from key_verifications_per_day_v1 order by key_id, tag";
    expect(await usage.values(text)).toEqual([
      ["key_a", "a", "a"],
      ["key_a", "b", "b"],
      ["key_a", "b", "b"],
    ]);
  });

  test("tags are grouped by", async () => {
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
  ])("%s", async (columns, expected) => {
    expect(await usage.values(`select ${columns} from ratelimits_v1`)).toEqual([expected]);
  });
});

describe("order", () => {
  const values = async (text: string) => (await usage.values(text)).flat();

  test("null and NaN are last in both directions", async () => {
    const ofNull = "select if(tokens = 4, null, tokens) as x from ratelimits_v1 order by x";
    expect(await values(ofNull)).toEqual([3, 5, null]);
    expect(await values(`${ofNull} desc`)).toEqual([5, 3, null]);
    expect(await values(`${ofNull} desc nulls first`)).toEqual([null, 5, 3]);
    const ofNaN = "select if(tokens = 4, nan, latency) as x from ratelimits_v1 order by x";
    expect(await values(ofNaN)).toEqual([0.5, 1.5, null]);
    expect(await values(`${ofNaN} desc`)).toEqual([1.5, 0.5, null]);
  });

  test("DISTINCT rows are ordered by expressions of their columns", async () => {
    expect(await values("select distinct passed from ratelimits_v1 order by passed desc")).toEqual([true, false]);
    expect(await values("select distinct tokens from ratelimits_v1 order by -tokens")).toEqual([5, 4, 3]);
  });
});
