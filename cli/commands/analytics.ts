import type { Data } from "../../core/api/procedures.ts";
import { withApi } from "../api/connection.ts";
import { formatBar, formatPlot } from "../chart.ts";
import { defineCommand, type Io, UsageError } from "../command.ts";
import { formatCsv } from "../csv.ts";
import { type Fields, instantText, listShape, printableJson, toObject } from "../fields.ts";
import { connection, json, limit } from "../options.ts";
import { formatTable } from "../table.ts";
import { invalidValue, parseInstant, parseLimit } from "../values.ts";

const HOUR_MS = 3_600_000;
/** Maximum range in hours that is grouped by hour; longer ranges are grouped by day. */
const HOURS_SHOWN_MAX = 72;

type By = "hour" | "day" | "key" | "identity" | "outcome";
const BY: readonly By[] = ["hour", "day", "key", "identity", "outcome"];

type Usage = Data<"admin.getUsage">["rows"][number];
type Outcome = keyof Usage["outcomes"];

/** Verification counts of one row. With `--by outcome`, a row counts a single outcome. */
interface UsageRow extends Omit<Usage, "outcomes"> {
  readonly outcomes: { readonly [One in Outcome]?: number };
  readonly outcome?: string;
}

const count = (name: string, outcome: Outcome, title: string) => ({
  name,
  title,
  value: ({ outcomes }: UsageRow) => outcomes[outcome] ?? 0,
});

const COUNTS: Fields<UsageRow> = [
  { name: "total", title: "total", value: (row) => row.total },
  count("valid", "VALID", "valid"),
  count("rateLimited", "RATE_LIMITED", "rate limited"),
  count("usageExceeded", "USAGE_EXCEEDED", "out of credits"),
  count("disabled", "DISABLED", "disabled"),
  count("expired", "EXPIRED", "expired"),
  count("forbidden", "FORBIDDEN", "forbidden"),
  count("insufficientPermissions", "INSUFFICIENT_PERMISSIONS", "no permission"),
];

const TIME = {
  name: "time",
  title: "time",
  value: (row: UsageRow) => row.time ?? null,
  text: (row: UsageRow) => instantText(row.time ?? null).slice(0, "2026-11-21 09:30".length),
};
const KEY = { name: "keyId", title: "key", value: (row: UsageRow) => row.keyId ?? null };
const IDENTITY: Fields<UsageRow> = [
  { name: "identityId", title: "identity", value: (row) => row.identity?.id ?? null },
  { name: "externalId", title: "external id", value: (row) => row.identity?.externalId ?? null, shrinks: true },
];
const OUTCOME = { name: "outcome", title: "outcome", value: (row: UsageRow) => row.outcome ?? null };

/** Members of the JSON output. Their names are the same for every `--by`. */
const FIELDS: Fields<UsageRow> = [TIME, KEY, ...IDENTITY, OUTCOME, ...COUNTS];

/** Leading columns of the table for each `--by`. */
const HEADS: Readonly<Record<By, Fields<UsageRow>>> = {
  hour: [TIME],
  day: [TIME],
  key: [KEY],
  identity: IDENTITY,
  outcome: [OUTCOME],
};

export const analytics = defineCommand({
  name: "analytics",
  description:
    "Includes the APIs for which the root key has read_analytics. Counts lag by a few seconds, and the range is extended to full hours. For SQL queries, call analytics.getVerifications.",
  options: {
    api: { type: "string", placeholder: "ID", help: "API id (api_…); restricts the result to its keys" },
    by: {
      type: "string",
      placeholder: "WHAT",
      help: "grouping: hour, day, key, identity or outcome (default: hour up to three days, otherwise day)",
    },
    since: {
      type: "string",
      placeholder: "WHEN",
      help: "start of the range, such as 2026-12-31 or 7d",
      default: "24h",
    },
    until: { type: "string", placeholder: "WHEN", help: "end of the range (default: now)" },
    limit: { ...limit, help: "maximum number of keys or identities, most used first" },
    csv: { type: "boolean", help: "CSV output with a header line" },
    ...connection,
    json,
  },
  response: listShape("usage", FIELDS),
  run: async (options, io) => {
    if (options.csv && options.json) throw new UsageError("--csv and --json exclude each other");
    const nowMs = Date.now();
    const sinceMs = parseInstant("since", options.since, { nowMs, spans: "back" });
    const untilMs =
      options.until === undefined ? nowMs : parseInstant("until", options.until, { nowMs, spans: "back" });
    if (sinceMs >= untilMs) throw new UsageError("--since must be before --until");
    const by = readBy(options.by, untilMs - sinceMs);
    const max = by === "key" || by === "identity" ? parseLimit(options.limit) : undefined;
    const body = {
      from: sinceMs,
      to: untilMs,
      ...(by === "outcome" ? {} : { groupBy: by }),
      ...(options.api === undefined ? {} : { apiId: options.api }),
      ...(max === undefined ? {} : { limit: max }),
    };
    const { data } = await withApi(options, io, (api) => api.call("admin.getUsage", body));
    const rows = data.rows.flatMap((row) => rowsOf(by, row));
    print(io, options, { rows, hasMore: data.hasMore, sinceMs, untilMs, by, max });
    return 0;
  },
});

function readBy(text: string | undefined, spanMs: number): By {
  if (text === undefined) return spanMs <= HOURS_SHOWN_MAX * HOUR_MS ? "hour" : "day";
  const by = BY.find((one) => one === text);
  if (by === undefined) throw invalidValue("by", text, `one of ${BY.join(", ")}`);
  return by;
}

const isTime = (by: By): boolean => by === "hour" || by === "day";

/** Returns the row itself or, with `--by outcome`, one row per outcome, most frequent first. */
function rowsOf(by: By, row: Usage): UsageRow[] {
  if (by !== "outcome") return [row];
  return Object.entries(row.outcomes)
    .filter(([, total]) => total > 0)
    .map(([outcome, total]) => ({ total, outcome, outcomes: { [outcome]: total } }))
    .sort((a, b) => b.total - a.total);
}

interface Printed {
  readonly rows: readonly UsageRow[];
  readonly hasMore: boolean;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly by: By;
  readonly max: number | undefined;
}

function print(
  io: Io,
  { json, csv }: { readonly json: boolean; readonly csv: boolean },
  { rows, hasMore, sinceMs, untilMs, by, max }: Printed,
): void {
  if (json) {
    io.out(printableJson({ usage: rows.map((row) => toObject(FIELDS, row)), hasMore }));
    return;
  }
  if (csv) {
    for (const line of formatCsv(FIELDS, rows)) io.out(line);
  } else if (rows.every(({ total }) => total === 0)) {
    io.note(`no verifications from ${instantText(Math.floor(sinceMs / HOUR_MS) * HOUR_MS)} to ${instantText(untilMs)}`);
  } else {
    for (const line of formatUsage(rows, by, io.columns)) io.out(line);
  }
  if (hasMore) io.note(`only the first ${max} are shown; increase --limit for more`);
}

/** Returns the lines of the chart and the table. Usage over time has one line chart; other groupings have a bar in each row. */
function formatUsage(rows: readonly UsageRow[], by: By, columns: number | undefined): string[] {
  const shown = COUNTS.filter(({ name, value }) => name === "total" || rows.some((row) => value(row) !== 0));
  if (isTime(by)) {
    const points = rows.map(({ time: timeMs = 0, total }) => ({ timeMs, value: total }));
    return [
      ...formatPlot(points, { columns, unit: by === "day" ? "day" : "hour" }),
      "",
      ...formatTable([...HEADS[by], ...shown], rows, columns),
    ];
  }
  const most = Math.max(...rows.map(({ total }) => total));
  const bar = { name: "bar", title: "", value: (row: UsageRow) => formatBar(row.total / most) };
  return formatTable([...HEADS[by], ...shown, bar], rows, columns);
}
