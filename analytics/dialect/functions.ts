/*
 * Functions that queries may call (api-v2.md section 18.2), in ClickHouse spelling. Function names are case-insensitive. The tree keeps the
 * caller's spelling, because ClickHouse names columns by it. Operators and CAST belong to the grammar.
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
  // Extension of this dialect: domain/analytics/key-spaces.ts replaces the calls before a store receives the query.
  "keySpaceOf",
].flatMap((names) => names.split(" "));

const BY_LOWER_CASE: ReadonlyMap<string, string> = new Map(
  PUBLISHED_FUNCTIONS.map((name) => [name.toLowerCase(), name]),
);

/** Returns the ClickHouse spelling of a function name; `undefined` for an unsupported function. */
export const publishedFunction = (written: string): string | undefined => BY_LOWER_CASE.get(written.toLowerCase());
