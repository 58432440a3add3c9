import { ANALYTICS_SCHEMA } from "../../api-server/domain/analytics/schema.ts";
import type { Target } from "./target.ts";

/** Generates docs/reference/analytics.md from the tables that validate analytics queries. */
export const analyticsReference: Target = {
  name: "analytics reference",
  files: async () => new Map([["docs/reference/analytics.md", page()]]),
};

const KINDS = [
  ["aggregate", "Aggregate functions"],
  ["window", "Window functions"],
  ["time", "Dates and times"],
  ["text", "Texts"],
  ["number", "Numbers"],
  ["condition", "Conditions"],
  ["array", "Arrays"],
] as const;

type Table = (typeof ANALYTICS_SCHEMA.tables)[number];

function page(): string {
  const { tables, functions } = ANALYTICS_SCHEMA;
  return [
    "# Analytics tables",
    "",
    "This page lists the tables, columns and functions of `analytics.getVerifications` and `analytics.getRatelimits`.",
    "`admin.getAnalyticsSchema` returns the same data. The [API reference](api-v2.md#18-usage-events) has the rules, limits and retention;",
    "[usage by customer](../guides/api/usage.md) has examples.",
    "",
    ...procedure("analytics.getVerifications", "verifications"),
    "In per-minute, per-hour, per-day and per-month tables, count with `SUM(count)`, not with `COUNT(*)`.",
    "",
    "The keys of an API are a key space. Select an API with `keySpaceOf('api_…')`:",
    "",
    "```sql",
    "SELECT toStartOfDay(time) AS day, SUM(count) AS requests",
    "  FROM key_verifications_per_hour_v1",
    " WHERE key_space_id = keySpaceOf('api_9xKp3Rt6VwY1zAbC')",
    " GROUP BY day ORDER BY day",
    "```",
    "",
    "For a table of all APIs, `GROUP BY key_space_id`. `admin.resolveNames` with `kind: api` returns the names of key spaces.",
    "",
    ...procedure("analytics.getRatelimits", "ratelimits"),
    "## Functions",
    "",
    "Function names ignore case. Operators, `CASE`, `CAST`, `INTERVAL` and `LIMIT n BY` work as in ClickHouse.",
    "`ARRAY JOIN tags AS tag` after the tables returns a row per element, and `LEFT ARRAY JOIN` keeps rows without elements.",
    "",
    "A time zone is a literal such as `'Europe/Berlin'`; the default is UTC. A time with a zone keeps it",
    "when it is compared with text, added to an interval, or passed to another function. Responses contain all times in UTC.",
    "",
    ...KINDS.flatMap(([kind, title]) => [
      `### ${title}`,
      "",
      ...merged(functions.filter((one) => one.kind === kind)).map(({ call, meaning }) => `- ${call}: ${meaning}`),
      "",
    ]),
  ].join("\n");

  function procedure(name: string, of: Table["of"]): string[] {
    const own = tables.filter((table) => table.of === of);
    const [raw, ...rollups] = own;
    if (raw === undefined) throw new Error(`${name} has no table`);
    return [
      `## ${name}`,
      "",
      ...section([raw]),
      // The tables of all buckets have the same columns and differ only in the type of `time`.
      ...section(rollups, raw),
    ];
  }
}

const INTERVAL = /^toInterval(\w+)\(/;

/** Merges the functions that return an interval into one row. */
function merged(functions: typeof ANALYTICS_SCHEMA.functions): Array<{ call: string; meaning: string }> {
  const intervals = functions.filter(({ call }) => INTERVAL.test(call)).map(({ call }) => `\`${call}\``);
  const meaning = "An interval of n units, to add to or subtract from a time.";
  return functions.flatMap(({ call, meaning: own }) => {
    if (!INTERVAL.test(call)) return [{ call: `\`${call}\``, meaning: own }];
    return `\`${call}\`` === intervals[0] ? [{ call: intervals.join(", "), meaning }] : [];
  });
}

/**
 * Returns the section about `tables`, which all have the same columns, with a list of these columns. Columns that are the same as in `raw`
 * are listed only by name.
 */
function section(tables: readonly Table[], raw?: Table): string[] {
  const [first] = tables;
  if (first === undefined) return [];
  const isAsInRaw = ({ name, type, meaning }: Table["columns"][number]): boolean =>
    raw?.columns.some((column) => column.name === name && column.type === type && column.meaning === meaning) === true;
  const known = first.columns.filter(isAsInRaw).map(({ name }) => `\`${name}\``);
  const typesOf = (column: string): string => {
    const types = tables.map(({ columns }) => columns.find(({ name }) => name === column)?.type);
    return new Set(types).size === 1
      ? `${types[0]}`
      : tables.map(({ name }, i) => `${types[i]} per ${unitOf(name)}`).join(", ");
  };
  return [
    tables.length === 1
      ? `\`${first.name}\`: ${first.meaning}`
      : `${tables.map(({ name }) => `\`${name}\``).join(", ")}: one row for each time unit and combination of the other columns.`,
    "",
    ...(known.length === 0 ? [] : [`- ${known.join(", ")}: as in \`${raw?.name}\`.`]),
    ...first.columns
      .filter((column) => !isAsInRaw(column))
      .map(({ name, meaning }) => {
        const is = tables.length > 1 && name === "time" ? "Start of the minute, hour, day or month, UTC." : meaning;
        return `- \`${name}\` (${typesOf(name)}): ${is}`;
      }),
    "",
  ];
}

const unitOf = (table: string): string => /_per_(\w+)_v1$/.exec(table)?.[1] ?? table;
