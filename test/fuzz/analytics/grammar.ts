import type { Random } from "../../torture/random.ts";

/*
 * Queries of the served subset at random, each from a seed. Most expressions have the type that their place asks for; some do not, and
 * then must be refused with a problem of the query.
 */

type Type = "String" | "Number" | "Time" | "Truth" | "Array";

interface Table {
  readonly name: string;
  readonly columns: Readonly<Record<string, Type>>;
}

const RAW: Table = {
  name: "key_verifications_v1",
  columns: {
    time: "Number",
    request_id: "String",
    workspace_id: "String",
    key_space_id: "String",
    key_id: "String",
    external_id: "String",
    outcome: "String",
    tags: "Array",
    source: "String",
    region: "String",
    spent_credits: "Number",
  },
};
const counted = (bucket: string): Table => ({
  name: `key_verifications_per_${bucket}_v1`,
  columns: {
    time: "Time",
    workspace_id: "String",
    key_space_id: "String",
    key_id: "String",
    external_id: "String",
    outcome: "String",
    tags: "Array",
    source: "String",
    app_id: "String",
    spent_credits: "Number",
    count: "Number",
  },
});
const TABLES: readonly Table[] = [RAW, ...["minute", "hour", "day", "month"].map(counted)];
const TYPES: readonly Type[] = ["String", "Number", "Time", "Truth", "Array"];
const UNITS = ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"];
const STARTS = ["Minute", "Hour", "Day", "Week", "Month", "Quarter", "Year"];

/** How often an expression has another type than its place asks for. */
const WRONG = 0.03;
const DEPTH_MAX = 4;

/** What can be named where an expression stands. */
interface Scope {
  readonly columns: Readonly<Record<string, Type>>;
  /** Whether a subquery may stand here. */
  readonly depth: number;
}

/** A query of one workspace's own events. It names no other workspace, so that no text of another one can come from the query. */
export function randomQuery(random: Random): string {
  const text = query(random, 0);
  return random.chance(0.05) ? spoiled(random, text) : text;
}

function query(random: Random, depth: number): string {
  if (depth < 2 && random.chance(0.08)) {
    const operator = random.pick(["UNION ALL", "UNION DISTINCT", "EXCEPT"]);
    const columns = random.whole(1, 2);
    return `${select(random, { depth: depth + 1, columns })} ${operator} ${select(random, { depth: depth + 1, columns })}`;
  }
  return select(random, { depth });
}

function select(random: Random, { depth, columns: wanted }: { depth: number; columns?: number }): string {
  const { from, columns, common } = source(random, depth);
  const scope: Scope = { columns, depth };
  const grouped = random.chance(0.4);
  const keys = grouped
    ? some(random, 1, 2, () => expression(random, random.pick(["String", "Time", "Number"]), scope, 2))
    : [];
  const value = () => (grouped ? aggregate(random, scope) : expression(random, random.pick(TYPES), scope, 0));
  const values = Array.from({ length: wanted ?? random.whole(1, 3) }, value);
  const shown = wanted === undefined ? [...keys, ...values] : values;
  const projected = shown.map((one, at) => `${one} AS ${random.chance(0.1) ? quoted(random, at) : `v${at}`}`);
  const parts = [
    common,
    `SELECT ${random.chance(0.1) ? "DISTINCT " : ""}${projected.join(", ")}`,
    `FROM ${from}`,
    random.chance(0.5) ? `WHERE ${expression(random, "Truth", scope, 0)}` : "",
    keys.length > 0 ? `GROUP BY ${keys.join(", ")}` : "",
    grouped && random.chance(0.3) ? `HAVING ${aggregate(random, scope)} ${comparison(random)} ${number(random)}` : "",
    random.chance(0.4) ? `ORDER BY ${order(random, shown.length)}` : "",
    random.chance(0.1) ? `LIMIT ${random.whole(0, 3)} BY ${random.whole(1, shown.length)}` : "",
    random.chance(0.3)
      ? `LIMIT ${random.whole(0, 20)}${random.chance(0.3) ? ` OFFSET ${random.whole(0, 5)}` : ""}`
      : "",
  ];
  return parts.filter((part) => part !== "").join(random.pick([" ", "\n", " /* a */ "]));
}

interface Source {
  readonly from: string;
  readonly columns: Readonly<Record<string, Type>>;
  readonly common: string;
}

function source(random: Random, depth: number): Source {
  const table = random.pick(TABLES);
  if (depth >= 2 || random.chance(0.7)) return { from: table.name, columns: table.columns, common: "" };
  if (random.chance(0.4)) {
    const shown = random.shuffled(Object.keys(table.columns)).slice(0, 4);
    const inner = `SELECT ${shown.join(", ")} FROM ${table.name}${random.chance(0.5) ? " LIMIT 7" : ""}`;
    const columns = Object.fromEntries(shown.map((name) => [name, table.columns[name] as Type]));
    return random.chance(0.5)
      ? { from: "c", columns, common: `WITH c AS (${inner})` }
      : { from: `(${inner}) AS d`, columns, common: "" };
  }
  const other = random.pick(TABLES);
  const kind = random.pick(["INNER", "LEFT", "RIGHT", "FULL"]);
  const columns = Object.fromEntries(Object.entries(table.columns).map(([name, type]) => [`a.${name}`, type]));
  const on = `a.key_id = b.key_id${random.chance(0.3) ? " AND a.outcome = b.outcome" : ""}`;
  return { from: `${table.name} AS a ${kind} JOIN ${other.name} AS b ON ${on}`, columns, common: "" };
}

function expression(random: Random, asked: Type, scope: Scope, depth: number): string {
  const type = random.chance(WRONG) ? random.pick(TYPES) : asked;
  const names = Object.keys(scope.columns).filter((name) => scope.columns[name] === type);
  const leaf = depth >= DEPTH_MAX || random.chance(0.35);
  if (leaf) return names.length > 0 && random.chance(0.75) ? random.pick(names) : LITERALS[type](random);
  const of = (wanted: Type) => expression(random, wanted, scope, depth + 1);
  if (random.chance(0.03)) return `multiIf(${of("Truth")}, ${of(type)}, ${of("Truth")}, ${of(type)}, ${of(type)})`;
  if (random.chance(0.02) && type !== "Array") return `ifNull(NULL, ${of(type)})`;
  if (random.chance(0.06)) return `if(${of("Truth")}, ${of(type)}, ${of(type)})`;
  if (random.chance(0.05)) return `CASE WHEN ${of("Truth")} THEN ${of(type)} ELSE ${of(type)} END`;
  if (random.chance(0.03) && type !== "Array") return `coalesce(NULL, ${of(type)})`;
  return COMPOUNDS[type](random, of, scope);
}

type Of = (type: Type) => string;

const LITERALS: Readonly<Record<Type, (random: Random) => string>> = {
  String: (random) => random.pick(["''", "'ours'", "'VALID'", "'a\\'b'", "'x%'", "'é'", "'2042-06-15'", "'{\"a\":1}'"]),
  Number: number,
  Time: (random) => random.pick(["now()", "today()", "toDate('2042-06-01')", "toDateTime('2042-06-15 12:00:00')"]),
  Truth: (random) => random.pick(["true", "false", "1", "0", "NULL IS NULL"]),
  Array: (random) => random.pick(["['ours']", "['a', 'b']", "['']"]),
};

function number(random: Random): string {
  return random.pick([
    "0",
    "1",
    "-1",
    "2",
    "7",
    "0.5",
    "1e3",
    "255",
    "2147483647",
    "9007199254740993",
    "-9223372036854775807",
  ]);
}

/** A time zone as a further argument, or none. */
const zone = (random: Random): string =>
  random.pick(["", ", 'Europe/Berlin'", ", 'America/New_York'", ", 'Asia/Kolkata'", ", 'UTC'"]);

const comparison = (random: Random): string => random.pick(["=", "!=", "<", "<=", ">", ">=", "=="]);

const COMPOUNDS: Readonly<Record<Type, (random: Random, of: Of, scope: Scope) => string>> = {
  String: (random, of) =>
    random.pick([
      () => `lower(${of("String")})`,
      () => `upper(${of("String")})`,
      () => `concat(${of("String")}, ${of("String")})`,
      () => `${of("String")} || ${of("String")}`,
      () => `substring(${of("String")}, ${random.whole(-3, 4)}, ${random.whole(0, 4)})`,
      () => `trim(${of("String")})`,
      () => `substring(${of("String")} FROM ${random.whole(-3, 4)} FOR ${random.whole(0, 4)})`,
      () => `replaceAll(${of("String")}, ${of("String")}, ${of("String")})`,
      () => `arrayStringConcat(${of("Array")}${random.pick(["", ", '-'", ", 'é'"])})`,
      () => `toString(${of(random.pick(["Number", "Time", "String"]))})`,
      () => `formatDateTime(${of("Time")}, '%Y-%m-%d %H:%i'${zone(random)})`,
      () => `JSONExtractString(${of("String")}, 'a')`,
      () => `${of("Array")}[${random.whole(-2, 2)}]`,
    ])(),
  Number: (random, of, scope) =>
    random.pick([
      () => `(${of("Number")} ${random.pick(["+", "-", "*", "/", "%"])} ${of("Number")})`,
      () => `abs(${of("Number")})`,
      () =>
        `${random.pick(["round", "floor", "ceil"])}(${of("Number")}${random.chance(0.3) ? `, ${random.whole(-2, 2)}` : ""})`,
      () => `length(${of(random.pick(["String", "Array"]))})`,
      () => `${random.pick(["toInt32", "toInt64", "toFloat64"])}(${of("Number")})`,
      () => `toUnixTimestamp(${of("Time")})`,
      () => `${random.pick(["toHour", "toMonth", "toDayOfWeek"])}(${of("Time")})`,
      () => `${random.pick(["toHour", "toMonth"])}(${of("Time")}${zone(random)})`,
      () => `dateDiff('${random.pick(UNITS).toLowerCase()}', ${of("Time")}, ${of("Time")})`,
      () => `intDiv(${of("Number")}, ${of("Number")})`,
      () => `position(${of("String")}, ${of("String")})`,
      () => `-${of("Number")}`,
      () => `(${of("Truth")} + ${of("Number")})`,
      () => (scope.depth < 2 ? `(SELECT count() FROM ${random.pick(TABLES).name})` : "3"),
    ])(),
  Time: (random, of) =>
    random.pick([
      () => `toStartOf${random.pick(["Minute", "Hour", "Day"])}(${of("Time")}${zone(random)})`,
      () => `toDateTime(${of("Time")}${zone(random)})`,
      () => `toStartOf${random.pick(STARTS)}(${of("Time")})`,
      () =>
        `date_trunc('${random.pick(["minute", "hour", "day", "week", "month", "quarter", "year"])}', ${of("Time")})`,
      () => `(${of("Time")} ${random.pick(["+", "-"])} INTERVAL ${random.whole(0, 40)} ${random.pick(UNITS)})`,
      () => `toDate(${of("Time")}${zone(random)})`,
      () => `toStartOf${random.pick(["Month", "Quarter", "Year"])}(${of("Time")}${zone(random)})`,
      () => `toDateTime(${of("Time")})`,
      () => `(${of("Time")} - toInterval${random.pick(["Day", "Hour", "Month"])}(${random.whole(0, 9)}))`,
    ])(),
  Truth: (random, of, scope) =>
    random.pick([
      () => `(${of("Number")} ${comparison(random)} ${of("Number")})`,
      () => `(${of("String")} ${comparison(random)} ${of("String")})`,
      () => `(${of("Time")} ${comparison(random)} ${of("Time")})`,
      () => `(${of("Truth")} ${random.pick(["AND", "OR"])} ${of("Truth")})`,
      () => `NOT (${of("Truth")})`,
      () => `${of("String")} ${random.pick(["LIKE", "NOT LIKE"])} ${random.pick(["'%o%'", "'_urs'", "''"])}`,
      () => `${of("String")} ${random.pick(["IN", "NOT IN"])} ('ours', ${LITERALS.String(random)})`,
      () => `${of("Number")} BETWEEN ${number(random)} AND ${number(random)}`,
      () => `has(${of("Array")}, ${of("String")})`,
      () => `${random.pick(["hasAny", "hasAll"])}(${of("Array")}, ${of("Array")})`,
      () => `${random.pick(["startsWith", "endsWith"])}(${of("String")}, ${of("String")})`,
      () => `${of("String")} IS ${random.pick(["", "NOT "])}NULL`,
      () => (scope.depth < 2 ? `${of("String")} IN (SELECT key_id FROM ${random.pick(TABLES).name})` : "1"),
    ])(),
  Array: (random, of) =>
    random.pick([
      () => `arrayFilter(x -> ${random.pick(["x != ''", "length(x) > 1", "startsWith(x, 'o')"])}, ${of("Array")})`,
      () => of("Array"),
    ])(),
};

function aggregate(random: Random, scope: Scope): string {
  const of = (type: Type) => expression(random, type, scope, 2);
  return random.pick([
    () => "count()",
    () => "count(*)",
    () => `countIf(${of("Truth")})`,
    () => `sum(${of("Number")})`,
    () => `sumIf(${of("Number")}, ${of("Truth")})`,
    () => `avg(${of("Number")})`,
    () => `${random.pick(["min", "max", "any"])}(${of(random.pick(["Number", "String", "Time"]))})`,
    () => `${random.pick(["uniq", "uniqExact"])}(${of("String")})`,
    () => `length(${random.pick(["groupArray", "groupUniqArray"])}(${of("String")}))`,
    () => `quantile(${random.pick(["0", "0.5", "0.95", "1"])})(${of("Number")})`,
    () => `count(DISTINCT ${of("String")})`,
    () => `median(${of("Number")})`,
    () => `quantiles(0.25, 0.75)(${of("Number")})`,
    () => `avgIf(${of("Number")}, ${of("Truth")})`,
    () => `uniqIf(${of("String")}, ${of("Truth")})`,
    () => `${random.pick(["argMax", "argMin"])}(request_id, request_id)`,
    () => `sum(${of("Number")}) FILTER (WHERE ${of("Truth")})`,
  ])();
}

const order = (random: Random, columns: number): string =>
  some(random, 1, 2, () => {
    const direction = random.pick(["", " ASC", " DESC"]);
    const nulls = random.chance(0.2) ? random.pick([" NULLS FIRST", " NULLS LAST"]) : "";
    return `${random.whole(1, Math.max(1, columns))}${direction}${nulls}`;
  }).join(", ");

/** An alias that no store takes for a name as it is. */
const quoted = (random: Random, at: number): string =>
  random.pick([`"V${at}"`, `\`v ${at}\``, `"${"n".repeat(70)}${at}"`, `"é${at}"`]);

const some = <T>(random: Random, min: number, max: number, make: () => T): T[] =>
  Array.from({ length: random.whole(min, max) }, make);

/** Something is left out, doubled or replaced: most of these do not parse, and none may harm. */
function spoiled(random: Random, text: string): string {
  const at = random.whole(0, text.length);
  const end = Math.min(text.length, at + random.whole(1, 6));
  return random.pick([
    () => text.slice(0, at) + text.slice(end),
    () => text.slice(0, end) + text.slice(at),
    () =>
      `${text.slice(0, at)}${random.pick(["'", '"', "`", "(", ")", "--", "/*", ";", "\\", "\u0000", "$$"])}${text.slice(at)}`,
  ])();
}
