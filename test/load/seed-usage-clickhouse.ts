import type { Pool } from "pg";
import { type ClickHouseClient, openClient } from "../../analytics/clickhouse/client.ts";
import { migrateClickhouse } from "../../analytics/clickhouse/migrate.ts";
import { keptDays } from "../../analytics/clickhouse/rows.ts";
import { ARRIVING, KEPT_DAYS } from "../../analytics/clickhouse/schema.ts";
import { DEFAULT_RETENTION } from "../../analytics/retention.ts";
import { DAY_MS } from "../../core/utc-date.ts";
import { kindSql, OUTCOMES, type Usage, usageConstants } from "./usage-formula.ts";

/** Statements that insert and merge a month at once. */
const REQUEST_MS_MAX = 600_000;
/** An insert makes a part of every table, which costs the same for few rows and for many. */
const ROWS_AT_ONCE = 1_000_000;

/**
 * Fills a ClickHouse with the verifications that `seedUsage` made, by inserts into the table of raw events, whose views make the counts. It goes
 * past the table in which portions arrive, which would look for each event whether another portion brought it. `db` is a Postgres whose
 * lock the migration takes. Throws when a rollup differs from the number of events.
 */
export async function seedUsageClickhouse(url: string, db: Pool, usage: Usage): Promise<void> {
  const client = openClient(url, { requestMsMax: REQUEST_MS_MAX, connectionsMax: 1 });
  try {
    await migrateClickhouse(client, db, { cluster: undefined });
    // Merges would use the processors in the middle of a measurement. What is asked for is merged at once; the larger tables stay in parts.
    for (const table of UNMERGED) await client.command({ query: `system stop merges ${table}` });
    const daysAtOnce = Math.max(1, Math.floor(ROWS_AT_ONCE / usage.eventsPerDay));
    for (let day = 0; day < usage.days.length; day += daysAtOnce) {
      const count = Math.min(daysAtOnce, usage.days.length - day);
      await client.command({ query: insertOfDays(usage, { day, count }) });
    }
    const merged = COUNTS.filter((table) => !UNMERGED.includes(table));
    for (const table of merged) await client.command({ query: `optimize table ${table} final` });
    await check(client, usage);
  } finally {
    await client.close();
  }
}

const { raw, columns } = ARRIVING.verification;
const MONTHS = "verification_counts_month";
const COUNTS = [...KEPT_DAYS.slice(1).map((bucket) => `verification_counts_${bucket}`), "verification_totals_hour"];
const UNMERGED = [raw, "verification_counts_minute", "verification_counts_hour"];

/** Of `count` days from the one at place `day` on. */
function insertOfDays(usage: Usage, { day, count }: { day: number; count: number }): string {
  const { workspaceId, keys, eventsPerDay, days } = usage;
  const { api_id, key_space_id, source, app_id, region } = usageConstants(usage);
  const text = (value: string) => `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const md5 = (of: string) => `left(lower(hex(MD5(${of}))), 24)`;
  const kind = kindSql("g", keys, { and: (a, b) => `bitAnd(${a}, ${b})`, div: (a, b) => `intDiv(${a}, ${b})` });
  const rows = `select g, kind, intDiv(kind, ${OUTCOMES.length}) as key, kind % ${OUTCOMES.length} as outcome
                  from (select toInt64(number) as g, ${kind} as kind from numbers(${day * eventsPerDay}, ${count * eventsPerDay}))`;
  const values: Readonly<Record<string, string>> = {
    workspace_id: text(workspaceId),
    time: `toInt64(${days[0]} + intDiv(g, ${eventsPerDay}) * ${DAY_MS} + intDiv(g % ${eventsPerDay} * ${DAY_MS}, ${eventsPerDay}))`,
    id: `concat('ev_', ${md5(`concat(${text(api_id)}, toString(g))`)})`,
    request_id: `concat('req_', ${md5("toString(g)")})`,
    portion_id: `'${String(day).padStart(32, "0")}'`,
    kept_days: `[${keptDays(DEFAULT_RETENTION, "verifications").join(", ")}]`,
    key_space_id: text(key_space_id),
    api_id: text(api_id),
    key_id: `concat('key_', ${md5(`concat(${text(api_id)}, toString(key))`)})`,
    identity_id: "concat('id_', toString(key))",
    external_id: "concat('user_', toString(key))",
    outcome: `[${OUTCOMES.map(text).join(", ")}][outcome + 1]`,
    tags: "if(key % 4 = 0, ['path=/orders'], [])",
    source: text(source),
    app_id: text(app_id),
    region: text(region),
    spent_credits: "toInt64(1)",
    latency_ms: "0.25",
  };
  const selected = columns.map((column) => {
    if (values[column] === undefined) throw new Error(`no value for column ${column}`);
    return `${values[column]} as _${column}`;
  });
  return `insert into ${raw} (${columns.join(", ")}) select ${selected.join(", ")} from (${rows})`;
}

/** Of the first day a part is older than the retention, and merges drop it; months are dropped as a whole. */
async function check(client: ClickHouseClient, { eventsPerDay, days }: Usage): Promise<void> {
  const [, second = 0] = days;
  const kept = `time >= fromUnixTimestamp64Milli(toInt64(${second}), 'UTC')`;
  const events = eventsPerDay * days.length;
  const checks = [
    { of: `count() as n from ${raw} where time >= ${second}`, expected: events - eventsPerDay },
    ...COUNTS.filter((table) => table !== MONTHS).map((table) => ({
      of: `sum(count) as n from ${table} where ${kept}`,
      expected: events - eventsPerDay,
    })),
    { of: `sum(count) as n from ${MONTHS}`, expected: events },
  ];
  for (const { of, expected } of checks) {
    const response = await client.query({ query: `select ${of}`, format: "JSONEachRow" });
    const [row] = await response.json<{ n: string }>();
    if (Number(row?.n) !== expected) throw new Error(`${of}: ${row?.n} instead of ${expected}`);
  }
}
