import { type ClickHouseClient, createClient } from "@clickhouse/client";
import { BUCKETS, type ColumnType, PUBLIC_TABLES, type PublicTable } from "../../analytics/tables.ts";
import type { UsageEvent } from "../../edge/events/contract.ts";
import { parseSpelt, textOf } from "./json-text.ts";

/*
 * What ClickHouse itself answers to a caller's text, byte for byte: a flat table per public table, with the rows that the caller may see and its
 * column types. No code of ours translates, aggregates or encodes anything between.
 */

const BUCKET_START = {
  minute: "toStartOfMinute",
  hour: "toStartOfHour",
  day: "toDate",
  month: "toStartOfMonth",
} as const;

/** Fills an empty database with events of which all are the caller's, as far as they are not too old. */
export async function loadOracle(url: string, events: readonly UsageEvent[], visibleFromMs: number): Promise<void> {
  const client = createClient({ url });
  try {
    for (const table of PUBLIC_TABLES) {
      await client.command({
        query: `create table ${table.name} (${columnsOf(table)}) engine = MergeTree order by tuple()`,
      });
      if (table.bucket !== undefined) continue;
      const rows = events.filter(isOf(table.of));
      await client.command({ query: `create table all_${table.name} as ${table.name}` });
      await client.insert({ table: `all_${table.name}`, values: rows.map(rawRow), format: "JSONEachRow" });
      await client.command({
        query: `insert into ${table.name} select * from all_${table.name} where time >= ${visibleFromMs} order by time, request_id`,
      });
    }
    for (const bucket of BUCKETS) await fillBuckets(client, bucket, visibleFromMs);
  } finally {
    await client.close();
  }
}

const columnsOf = ({ columns }: PublicTable): string =>
  Object.entries(columns)
    .map(([name, type]) => `\`${name}\` ${oracleType(type)}`)
    .join(", ");

const oracleType = (type: ColumnType): string => (type === "DateTime" ? "DateTime('UTC')" : type);

const isOf = (of: PublicTable["of"]) => (event: UsageEvent) =>
  (of === "verifications") === (event.type === "verification");

function rawRow(event: UsageEvent): Record<string, unknown> {
  const common = { time: event.timeMs, request_id: event.requestId, workspace_id: event.workspaceId };
  if (event.type === "ratelimit") {
    return {
      ...common,
      namespace_id: event.namespaceId,
      identifier: event.identifier,
      passed: event.passed,
      latency: event.latencyMs,
      override_id: event.overrideId ?? "",
      limit: event.limit,
      remaining: event.remaining,
      reset_at: event.resetMs,
      tokens: event.cost,
    };
  }
  return {
    ...common,
    key_space_id: event.keySpaceId,
    key_id: event.keyId,
    external_id: event.externalId ?? "",
    outcome: event.outcome,
    tags: event.tags,
    source: event.source,
    app_id: event.appId ?? "",
    region: event.region,
    spent_credits: event.spentCredits,
  };
}

/** A bucket is seen, whole, when a part of it is in what is visible. */
async function fillBuckets(
  client: ClickHouseClient,
  bucket: (typeof BUCKETS)[number],
  visibleFromMs: number,
): Promise<void> {
  const startOf = (text: string) => `${BUCKET_START[bucket]}(${text})`;
  const start = startOf("fromUnixTimestamp64Milli(time, 'UTC')");
  const from = startOf(`fromUnixTimestamp64Milli(toInt64(${visibleFromMs}), 'UTC')`);
  await client.command({
    query: `insert into key_verifications_per_${bucket}_v1
      select ${start} as start, workspace_id, key_space_id, key_id, external_id, outcome, arraySort(tags) as sorted, source, app_id,
             sum(spent_credits), count()
        from all_key_verifications_v1 where start >= ${from} group by all order by all`,
  });
  await client.command({
    query: `insert into ratelimits_per_${bucket}_v1
      select ${start} as start, workspace_id, namespace_id, identifier, countIf(passed), count(), sum(tokens), sumIf(tokens, passed)
        from all_ratelimits_v1 where start >= ${from} group by all order by all`,
  });
}

const SETTINGS = {
  default_format: "JSONCompactEachRowWithNamesAndTypes",
  output_format_json_quote_64bit_integers: "0",
  output_format_json_quote_denormals: "0",
  date_time_output_format: "iso",
  // Reads and adds in the order in which rows were inserted.
  max_threads: "1",
  session_timezone: "UTC",
  max_execution_time: "30",
};

/** The clock cannot be set, so that its functions become literals. Queries with them name their columns. */
const atTime = (query: string, nowMs: number): string =>
  query
    .replace(/\bnow64\(\)/gi, `toDateTime64('${iso(nowMs)}', 3)`)
    .replace(/\bnow\(\)/gi, `toDateTime('${iso(nowMs).slice(0, 19)}')`)
    .replace(/\btoday\(\)/gi, `toDate('${iso(nowMs).slice(0, 10)}')`);

const iso = (ms: number): string => new Date(ms).toISOString().slice(0, 23).replace("T", " ");

/** Returns the JSON of each row that ClickHouse answers with. Throws its error. */
export async function askOracle(url: string, query: string, nowMs: number): Promise<readonly string[]> {
  const to = new URL(url);
  const authorization = `Basic ${Buffer.from(`${decodeURIComponent(to.username)}:${decodeURIComponent(to.password)}`).toString("base64")}`;
  to.search = new URLSearchParams({ ...SETTINGS, database: to.pathname.slice(1) }).toString();
  [to.username, to.password, to.pathname] = ["", "", "/"];
  const reply = await fetch(to, { method: "POST", headers: { authorization }, body: atTime(query, nowMs) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(text.slice(0, 500));
  const [names = [], types = [], ...rows] = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => parseSpelt(line) as unknown[]);
  // Of several columns with one name the last one stays.
  const last = new Map(names.map((name, index) => [String(name), index]));
  const shown = names.flatMap((name, index) => (last.get(String(name)) === index ? [{ name, index }] : []));
  return rows.map((row) => {
    const members = shown.map(
      ({ name, index }) => `${JSON.stringify(name)}:${textOf(withTime(row[index], String(types[index])))}`,
    );
    return `{${members.join(",")}}`;
  });
}

/** ClickHouse has no ISO form of dates alone; ours is that of midnight. */
const withTime = (value: unknown, type: string): unknown =>
  /^(Nullable\()?Date(32)?\)?$/.test(type) && typeof value === "string" ? `${value}T00:00:00Z` : value;
