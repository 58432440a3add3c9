import { createClient } from "@clickhouse/client";
import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { ratelimitRow, verificationRow } from "../../analytics/clickhouse/rows.ts";
import { ARRIVING } from "../../analytics/clickhouse/schema.ts";
import { PostgresAnalytics } from "../../analytics/postgres/store.ts";
import { BUCKETS } from "../../analytics/tables.ts";
import { DAY_MS } from "../../core/utc-date.ts";
import type { UsageEvent } from "../../edge/events/contract.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { byDayAndWorkspace } from "./events.ts";

/** Ingests each day as if it were today, because events of other days are refused, and adds them up at the end. */
export async function loadPostgres(db: Pool, events: readonly UsageEvent[]): Promise<void> {
  let nowMs = 0;
  const log = pino({ level: "silent" });
  const store = new PostgresAnalytics({ db, nowMs: () => nowMs, log, metrics: new Registry() });
  for (const [day, workspaces] of byDayAndWorkspace(events)) {
    nowMs = Date.parse(day) + DAY_MS - 1;
    await store.maintain(nowMs);
    for (const [workspaceId, own] of workspaces) {
      const lines = own.map((event) => JSON.stringify(event)).join("\n");
      const { stored } = await store.ingest(new EventLines(workspaceId, lines), nowMs);
      if (stored !== own.length) throw new Error(`${stored} of ${own.length} events of ${day} were stored`);
    }
  }
  while (await store.rollUp());
  await db.query("analyze");
}

/**
 * In a few inserts, through the views that add events up. What ingestion adds to that has tests of its own. Nothing is merged
 * afterwards, so that each query has to add up what lies in several parts.
 */
export async function loadClickhouse(url: string, events: readonly UsageEvent[]): Promise<void> {
  const client = createClient({ url });
  for (const counts of ["verification_counts", "ratelimit_counts"]) {
    for (const bucket of BUCKETS) await client.command({ query: `system stop merges ${counts}_${bucket}` });
  }
  // Nothing is old enough to be dropped by the machine's clock; 100 years on, a time would be beyond what ClickHouse can add to.
  const keptDays = [10_000, 10_000, 10_000, 10_000, 10_000];
  for (let part = 0; part < 3; part++) {
    const of = { batchId: String(part).padStart(32, "0"), keptDays };
    const some = events.filter((_, index) => index % 3 === part);
    const rows = {
      verification: some.flatMap((event) => (event.type === "verification" ? [verificationRow(event, of)] : [])),
      ratelimit: some.flatMap((event) => (event.type === "ratelimit" ? [ratelimitRow(event, of)] : [])),
    };
    for (const kind of ["verification", "ratelimit"] as const) {
      const { table, columns } = ARRIVING[kind];
      const values = rows[kind];
      await client.insert({ table, columns: columns as [string, ...string[]], values, format: "JSONCompactEachRow" });
    }
  }
  await client.close();
}
