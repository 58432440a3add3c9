/*
 * The functions that queries may call (api-v2.md section 18.2), in ClickHouse's spelling. Callers may write them in any case of letters, and
 * the tree keeps what they wrote, because ClickHouse names columns by it. Operators and CAST are not among them: the grammar has them.
 */
export const PUBLISHED_FUNCTIONS: readonly string[] = [
  "count countIf sum sumIf avg min max any groupArray groupUniqArray uniq uniqExact quantile",
  "row_number rank dense_rank lag lead first_value last_value",
  "now now64 today toDate toDateTime toDateTime64 toStartOfMinute toStartOfHour toStartOfDay toStartOfWeek toStartOfMonth",
  "toStartOfQuarter toStartOfYear date_trunc formatDateTime fromUnixTimestamp64Milli toUnixTimestamp64Milli toUnixTimestamp",
  "toIntervalNanosecond toIntervalMicrosecond toIntervalMillisecond toIntervalSecond toIntervalMinute toIntervalHour",
  "toIntervalDay toIntervalWeek toIntervalMonth toIntervalQuarter toIntervalYear",
  "lower upper substring concat length trim startsWith endsWith JSONExtractString",
  "round floor ceil abs if coalesce",
  "toString toInt32 toInt64 toFloat64",
  "has hasAny hasAll arrayJoin arrayFilter",
  // Ours: domain/analytics/key-spaces.ts replaces its calls, so that no store sees it.
  "keySpaceOf",
].flatMap((names) => names.split(" "));

const BY_LOWER_CASE: ReadonlyMap<string, string> = new Map(
  PUBLISHED_FUNCTIONS.map((name) => [name.toLowerCase(), name]),
);

/** Returns the function's name as ClickHouse spells it, or undefined for a function that is not offered. */
export const publishedFunction = (written: string): string | undefined => BY_LOWER_CASE.get(written.toLowerCase());
