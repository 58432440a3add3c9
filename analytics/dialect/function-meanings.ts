/* Signatures and return values of the functions in functions.ts, as help for query authors. A test keeps both files consistent. */

export interface FunctionMeaning {
  /**
   * `aggregate` functions read the rows of a group, `window` functions the rows of a window, `array` functions the elements of an array.
   */
  readonly kind: "aggregate" | "window" | "time" | "text" | "number" | "condition" | "array";
  readonly call: string;
  readonly meaning: string;
}

const of =
  (kind: FunctionMeaning["kind"]) =>
  (call: string, meaning: string): FunctionMeaning => ({ kind, call, meaning });
const aggregate = of("aggregate");
const window = of("window");
const time = of("time");
const text = of("text");
const number = of("number");
const condition = of("condition");
const array = of("array");

const interval = (unit: string): FunctionMeaning =>
  time(`toInterval${unit}(n)`, `n ${unit.toLowerCase()}s, to add to a time or take from it.`);
const startOf = (unit: string): FunctionMeaning =>
  time(`toStartOf${unit}(t)`, `The start of the ${unit.toLowerCase()}, UTC.`);

const MEANINGS: readonly FunctionMeaning[] = [
  aggregate("count()", "How many rows; of rollups sum(count) is how many events."),
  aggregate("countIf(condition)", "How many rows meet the condition."),
  aggregate("sum(x)", "The sum; 0 of nothing."),
  aggregate("sumIf(x, condition)", "The sum over the rows that meet the condition."),
  aggregate("avg(x)", "The mean; null of nothing."),
  aggregate("min(x)", "The smallest."),
  aggregate("max(x)", "The largest."),
  aggregate("any(x)", "The value of some row."),
  aggregate("groupArray(x)", "All values as an array."),
  aggregate("groupUniqArray(x)", "Each value once, as an array."),
  aggregate("uniq(x)", "How many different values."),
  aggregate("uniqExact(x)", "How many different values."),
  aggregate("quantile(0.99)(x)", "The value below which this part of all values lies; 0.5 when left out."),
  window("row_number() OVER (ORDER BY x)", "The row's place: 1, 2, 3."),
  window("rank() OVER (ORDER BY x)", "The row's rank; equal rows share one."),
  window("dense_rank() OVER (ORDER BY x)", "The same without gaps."),
  window("lag(x) OVER (ORDER BY t)", "The value in the row before."),
  window("lead(x) OVER (ORDER BY t)", "The value in the row after."),
  window("first_value(x) OVER (ORDER BY t)", "The value in the window's first row."),
  window("last_value(x) OVER (ORDER BY t)", "The value in the window's last row."),
  time("now()", "The time of the query, to the second."),
  time("now64(3)", "The time of the query, with decimals."),
  time("today()", "The date of the query, UTC."),
  time("toDate(x)", "The date of a time, a text or a number."),
  time("toDateTime(x)", "The time of a text such as '2026-03-01 10:00:00', or of seconds since 1970."),
  time("toDateTime64(x, 3)", "The same with decimals."),
  startOf("Minute"),
  startOf("Hour"),
  startOf("Day"),
  time("toStartOfWeek(t, 1)", "The start of the week: Monday with 1, else Sunday."),
  startOf("Month"),
  startOf("Quarter"),
  startOf("Year"),
  time("date_trunc('hour', t)", "The start of the unit that the text names; weeks begin on Monday."),
  time("formatDateTime(t, '%Y-%m-%d')", "The time as a text; %H:%i are hours and minutes."),
  time("fromUnixTimestamp64Milli(ms)", "The time of Unix milliseconds, as `time` of a raw table has them."),
  time("toUnixTimestamp64Milli(t)", "The Unix milliseconds of a time."),
  time("toUnixTimestamp(t)", "The Unix seconds of a time."),
  ...["Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"].map(interval),
  ...["Day", "Week", "Month", "Quarter", "Year"].map(interval),
  text("lower(s)", "ASCII letters as small ones."),
  text("upper(s)", "ASCII letters as capitals."),
  text("substring(s, from, bytes)", "A part of the text; the first byte is 1."),
  text("concat(s, …)", "The texts one after the other."),
  text("length(s)", "The bytes of a text, or the elements of an array."),
  text("trim(s)", "Without blanks at both ends."),
  text("startsWith(s, prefix)", "1 when the text begins so, else 0."),
  text("endsWith(s, suffix)", "1 when the text ends so, else 0."),
  text(
    "JSONExtractString(s, 'name')",
    "A member of a text that is JSON, as a text. On Postgres '' when it is a text with U+0000.",
  ),
  text("keySpaceOf('api_…')", "The key space of an API, as key_space_id has it; '' for an API that you cannot read."),
  number("round(x, digits)", "Rounded; halves to the even neighbour."),
  number("floor(x, digits)", "Rounded down."),
  number("ceil(x, digits)", "Rounded up."),
  number("abs(x)", "Without its sign."),
  condition("if(condition, a, b)", "a when the condition holds, else b."),
  condition("coalesce(x, …)", "The first that is not null."),
  text("toString(x)", "As a text."),
  number("toInt32(x)", "As a whole number of 32 bits."),
  number("toInt64(x)", "As a whole number of 64 bits; decimals are cut off."),
  number("toFloat64(x)", "As a number with decimals."),
  array("has(tags, 'x')", "1 when the array has the element, else 0."),
  array("hasAny(tags, ['x', 'y'])", "1 when it has one of them."),
  array("hasAll(tags, ['x', 'y'])", "1 when it has all of them."),
  array("arrayJoin(tags)", "A row for each element; none for an empty array."),
  array("arrayFilter(t -> t != 'x', tags)", "The elements that meet the condition."),
];

const BY_NAME: ReadonlyMap<string, FunctionMeaning> = new Map(
  MEANINGS.map((meaning) => [meaning.call.slice(0, meaning.call.indexOf("(")), meaning]),
);

/** Returns the description of a function in the spelling of functions.ts. */
export const functionMeaning = (name: string): FunctionMeaning | undefined => BY_NAME.get(name);
export const functionsWithMeaning: ReadonlySet<string> = new Set(BY_NAME.keys());
