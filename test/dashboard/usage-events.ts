import { pino } from "pino";
import { Registry } from "prom-client";
import { PostgresAnalytics } from "../../analytics/postgres/store.ts";
import { DAY_MS } from "../../core/utc-date.ts";
import type { UsageEvent } from "../../edge/events/contract.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { createPool } from "../../postgres/pool.ts";

/**
 * Stores events in the database of a running server, as its ingester would have done at their time: an event of last week too. Returns when all are in
 * the tables of counts.
 */
export async function storeUsage(databaseUrl: string, events: readonly UsageEvent[]): Promise<void> {
  const db = createPool(databaseUrl, { connectionsMax: 2 });
  const nowMs = Date.now();
  const store = new PostgresAnalytics({
    db,
    nowMs: () => nowMs,
    log: pino({ level: "silent" }),
    metrics: new Registry(),
  });
  try {
    const portions = Map.groupBy(
      events,
      ({ workspaceId, timeMs }) => `${workspaceId} ${Math.floor((nowMs - timeMs) / DAY_MS)}`,
    );
    for (const [name, of] of portions) {
      const [workspaceId = "", daysAgo] = name.split(" ");
      const thenMs = nowMs - Number(daysAgo) * DAY_MS;
      await store.maintain(thenMs);
      const lines = new EventLines(workspaceId, of.map((event) => JSON.stringify(event)).join("\n"));
      const { stored } = await store.ingest(lines, thenMs);
      if (stored !== of.length) throw new Error(`${stored} of ${of.length} events were stored`);
    }
    // The server rolls up too: what is left is nothing when both have ended.
    const queued = async (): Promise<number> => {
      const { rows } = await db.query<{ n: number }>("select count(*)::int as n from rollup_queue");
      return rows[0]?.n ?? 0;
    };
    const giveUpAtMs = performance.now() + 30_000;
    while ((await queued()) > 0) {
      if (performance.now() > giveUpAtMs) throw new Error("the events were not rolled up in 30 s");
      await store.rollUp();
    }
  } finally {
    await store.close();
    await db.end();
  }
}
