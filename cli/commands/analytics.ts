import type { Slice, Target, UsageCount } from "../../analytics/counts.ts";
import { findApi } from "../../api-server/db/apis.ts";
import { analyticsSettingsOf, visibleFrom } from "../../api-server/domain/analytics/settings.ts";
import { sliceStart } from "../../api-server/domain/analytics/slices.ts";
import { countUsage } from "../../api-server/domain/analytics/usage.ts";
import { Code } from "../../core/verification/codes.ts";
import { notFound, withWorkspace } from "../administration.ts";
import { analyticsAddress, withUsage } from "../analytics-store.ts";
import { formatBar, formatPlot } from "../chart.ts";
import { defineCommand, type Io, UsageError } from "../command.ts";
import { formatCsv } from "../csv.ts";
import { type Fields, instantText, listShape, printableJson, toObject } from "../fields.ts";
import { analyticsReader, database, json, limit, workspace } from "../options.ts";
import { formatTable } from "../table.ts";
import { invalidValue, parseInstant, parseLimit } from "../values.ts";

const HOUR_MS = 3_600_000;
/** Maximum range in hours that is grouped by hour; longer ranges are grouped by day. */
const HOURS_SHOWN_MAX = 72;

type By = "hour" | "day" | "key" | "identity" | "outcome";
const BY: readonly By[] = ["hour", "day", "key", "identity", "outcome"];

/** Verification counts of one row; with `--by outcome`, the share of one outcome. */
interface UsageRow extends UsageCount {
  readonly outcome: string | undefined;
}

const count = (name: string, code: Code, title: string) => ({
  name,
  title,
  value: ({ byCode }: UsageRow) => byCode[code],
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
  value: (row: UsageRow) => row.timeMs ?? null,
  text: (row: UsageRow) => instantText(row.timeMs ?? null).slice(0, "2026-11-21 09:30".length),
};
const KEY = { name: "keyId", title: "key", value: (row: UsageRow) => row.keyId ?? null };
const IDENTITY: Fields<UsageRow> = [
  { name: "identityId", title: "identity", value: (row) => row.identity?.id ?? null },
  { name: "externalId", title: "external id", value: (row) => row.identity?.externalId ?? null, shrinks: true },
];
const OUTCOME = { name: "outcome", title: "outcome", value: (row: UsageRow) => row.outcome ?? null };

/** Members of the JSON output, whose names are the same for every `--by`. */
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
    "Counts lag by a few seconds, and include the full hours of --since and --until. For SQL queries, call analytics.getVerifications.",
  options: {
    workspace,
    api: { type: "string", placeholder: "ID", help: "API id, api_…; restricts the result to its keys" },
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
    ...database,
    ...analyticsReader,
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
    const store = analyticsAddress(options);
    const asked = { sinceMs, untilMs, nowMs, by, max };
    const rows = await withWorkspace(options, async ({ db }, { id: workspaceId, ...rest }) => {
      const api = options.api === undefined ? undefined : await findApi(db, { workspaceId, apiId: options.api });
      if (options.api !== undefined && api === undefined) {
        throw notFound(`API ${options.api}`, { id: workspaceId, ...rest }, "api list");
      }
      const { retention } = await analyticsSettingsOf(db, workspaceId);
      const clock = { nowMs, visibleFromMs: visibleFrom(retention, "verifications", nowMs).hour };
      const question = {
        workspaceId,
        keySpaceIds: api === undefined ? undefined : [api.key_space_id],
        keyIds: undefined,
        identityId: undefined,
        tags: [],
        startMs: sinceMs,
        endMs: untilMs,
        slice: sliceOf(by),
        by: targetsOf(by),
        order: undefined,
        limit: max === undefined ? undefined : max + 1,
      };
      const usage = await withUsage(db, store, (count) => countUsage(count, question, clock));
      if (usage.kind === "tooMany")
        throw new UsageError(`more than ${usage.rowsMax} rows; use a shorter range, or --by day`);
      return usage.rows;
    });
    print(
      io,
      options,
      rows.flatMap((row) => rowsOf(by, row)),
      asked,
    );
    return 0;
  },
});

function readBy(text: string | undefined, spanMs: number): By {
  if (text === undefined) return spanMs <= HOURS_SHOWN_MAX * HOUR_MS ? "hour" : "day";
  const by = BY.find((one) => one === text);
  if (by === undefined) throw invalidValue("by", text, `one of ${BY.join(", ")}`);
  return by;
}

const sliceOf = (by: By): Slice | undefined => (by === "hour" || by === "day" ? by : undefined);
const targetsOf = (by: By): readonly Target[] => (by === "key" || by === "identity" ? [by] : []);

/** Returns the row itself or, with `--by outcome`, one row per outcome, most frequent first. */
function rowsOf(by: By, row: UsageCount): UsageRow[] {
  if (by !== "outcome") return [{ ...row, outcome: undefined }];
  const none = Object.fromEntries(Code.options.map((code) => [code, 0])) as Record<Code, number>;
  return Code.options
    .filter((code) => row.byCode[code] > 0)
    .map((code) => ({ ...row, outcome: code, byCode: { ...none, [code]: row.byCode[code] }, total: row.byCode[code] }))
    .sort((a, b) => b.total - a.total);
}

interface Asked {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly by: By;
  readonly max: number | undefined;
}

function print(
  io: Io,
  { json, csv }: { readonly json: boolean; readonly csv: boolean },
  all: readonly UsageRow[],
  { sinceMs, untilMs, by, max = all.length }: Asked,
): void {
  const rows = all.slice(0, max);
  const hasMore = all.length > max;
  if (json) {
    io.out(printableJson({ usage: rows.map((row) => toObject(FIELDS, row)), hasMore }));
    return;
  }
  if (csv) {
    for (const line of formatCsv(FIELDS, rows)) io.out(line);
  } else if (rows.every(({ total }) => total === 0)) {
    io.note(`no verifications from ${instantText(sliceStart("hour", sinceMs))} to ${instantText(untilMs)}`);
  } else {
    for (const line of formatUsage(rows, by, io.columns)) io.out(line);
  }
  if (hasMore) io.note(`only the first ${max} are shown; increase --limit for more`);
}

/** Returns the lines of the chart and the table. Usage over time has one line chart; other groupings have a bar in each row. */
function formatUsage(rows: readonly UsageRow[], by: By, columns: number | undefined): string[] {
  const shown = COUNTS.filter(({ name, value }) => name === "total" || rows.some((row) => value(row) !== 0));
  if (sliceOf(by) !== undefined) {
    const points = rows.map(({ timeMs = 0, total }) => ({ timeMs, value: total }));
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
