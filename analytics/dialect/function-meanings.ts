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
  time(`toInterval${unit}(n)`, `n ${unit.toLowerCase()}s, to add to or subtract from a time.`);
const startOf = (unit: string): FunctionMeaning =>
  time(`toStartOf${unit}(t)`, `Start of the ${unit.toLowerCase()}, UTC.`);

const MEANINGS: readonly FunctionMeaning[] = [
  aggregate("count()", "Number of rows. In tables per unit use sum(count) for events."),
  aggregate("countIf(condition)", "Number of rows that meet the condition."),
  aggregate("sum(x)", "Sum; 0 without rows."),
  aggregate("sumIf(x, condition)", "Sum over the rows that meet the condition."),
  aggregate("avg(x)", "Mean; null without rows."),
  aggregate("min(x)", "Minimum."),
  aggregate("max(x)", "Maximum."),
  aggregate("any(x)", "Value of any row."),
  aggregate("groupArray(x)", "Array of all values."),
  aggregate("groupUniqArray(x)", "Array of the distinct values."),
  aggregate("uniq(x)", "Number of distinct values."),
  aggregate("uniqExact(x)", "Number of distinct values."),
  aggregate("quantile(0.99)(x)", "Quantile at this level; default 0.5."),
  window("row_number() OVER (ORDER BY x)", "Number of the row: 1, 2, 3."),
  window("rank() OVER (ORDER BY x)", "Rank; equal rows have the same rank."),
  window("dense_rank() OVER (ORDER BY x)", "Rank without gaps."),
  window("lag(x) OVER (ORDER BY t)", "Value in the previous row."),
  window("lead(x) OVER (ORDER BY t)", "Value in the next row."),
  window("first_value(x) OVER (ORDER BY t)", "Value in the first row of the window."),
  window("last_value(x) OVER (ORDER BY t)", "Value in the last row of the window."),
  time("now()", "Time of the query, in seconds."),
  time("now64(3)", "Time of the query, with fractions of a second."),
  time("today()", "Date of the query, UTC."),
  time("toDate(x)", "Date of a time, a text or a number."),
  time("toDateTime(x)", "Time of a text such as '2026-03-01 10:00:00', or of Unix seconds."),
  time("toDateTime64(x, 3)", "As toDateTime, with fractions of a second."),
  startOf("Minute"),
  startOf("Hour"),
  startOf("Day"),
  time("toStartOfWeek(t, 1)", "Start of the week: Monday with 1, otherwise Sunday."),
  startOf("Month"),
  startOf("Quarter"),
  startOf("Year"),
  time("date_trunc('hour', t)", "Start of the named unit; weeks begin on Monday."),
  time("formatDateTime(t, '%Y-%m-%d')", "Formatted time; %H:%i are hours and minutes."),
  time("fromUnixTimestamp64Milli(ms)", "Time of Unix milliseconds, such as `time` of a table of events."),
  time("toUnixTimestamp64Milli(t)", "Unix milliseconds of a time."),
  time("toUnixTimestamp(t)", "Unix seconds of a time."),
  ...["Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"].map(interval),
  ...["Day", "Week", "Month", "Quarter", "Year"].map(interval),
  text("lower(s)", "Text with ASCII letters in lower case."),
  text("upper(s)", "Text with ASCII letters in upper case."),
  text("substring(s, from, bytes)", "Part of the text, in bytes; the first byte is 1."),
  text("concat(s, …)", "Concatenated texts."),
  text("length(s)", "Number of bytes of a text, or of elements of an array."),
  text("trim(s)", "Text without spaces at both ends."),
  text("startsWith(s, prefix)", "1 if the text begins with the prefix, otherwise 0."),
  text("endsWith(s, suffix)", "1 if the text ends with the suffix, otherwise 0."),
  text("JSONExtractString(s, 'name')", "String member of a JSON text. On Postgres '' for a string with U+0000."),
  text("keySpaceOf('api_…')", "Key space of an API, for key_space_id; '' for an API that you cannot read."),
  number("round(x, digits)", "Rounded number; halves to the even neighbor."),
  number("floor(x, digits)", "Number rounded down."),
  number("ceil(x, digits)", "Number rounded up."),
  number("abs(x)", "Absolute value."),
  condition("if(condition, a, b)", "a if the condition is true, otherwise b."),
  condition("coalesce(x, …)", "First value that is not null."),
  text("toString(x)", "Text."),
  number("toInt32(x)", "32-bit integer."),
  number("toInt64(x)", "64-bit integer, truncated."),
  number("toFloat64(x)", "Floating-point number."),
  array("has(tags, 'x')", "1 if the array has the element, otherwise 0."),
  array("hasAny(tags, ['x', 'y'])", "1 if the array has one of the elements, otherwise 0."),
  array("hasAll(tags, ['x', 'y'])", "1 if the array has all elements, otherwise 0."),
  array("arrayJoin(tags)", "One row per element; no row for an empty array."),
  array("arrayFilter(t -> t != 'x', tags)", "Array of the elements that meet the condition."),
];

const BY_NAME: ReadonlyMap<string, FunctionMeaning> = new Map(
  MEANINGS.map((meaning) => [meaning.call.slice(0, meaning.call.indexOf("(")), meaning]),
);

/** Returns the description of a function in the spelling of functions.ts. */
export const functionMeaning = (name: string): FunctionMeaning | undefined => BY_NAME.get(name);
export const functionsWithMeaning: ReadonlySet<string> = new Set(BY_NAME.keys());
