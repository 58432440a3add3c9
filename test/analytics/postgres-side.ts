import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { type QueryLimits, QueryRefused, type QueryScope } from "../../api-server/analytics/contract.ts";
import { readQuery } from "../../api-server/analytics/dialect/check.ts";
import { explainProblem, QueryProblem } from "../../api-server/analytics/dialect/problem.ts";
import { resolveQuery } from "../../api-server/analytics/dialect/resolve/resolve.ts";
import { emitForPostgres } from "../../api-server/analytics/postgres/emit/emit.ts";
import { openPostgresReader } from "../../api-server/analytics/postgres/run.ts";
import { PostgresAnalytics } from "../../api-server/analytics/postgres/store.ts";
import { createPool } from "../../api-server/store/pool.ts";
import type { UsageEvent } from "../../edge/events/contract.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { type Answer, readCell } from "./compare.ts";
import type { CorpusQuery } from "./corpus/query.ts";
import { byDayAndWorkspace, MAIN, NOW_MS, VISIBLE_FROM_MS } from "./events.ts";

/* What Postgres answers: events go in by ingestion and are rolled up, and a query takes the way of a caller's. */

const DAY_MS = 86_400_000;

/** Ingests each day as if it were today, because events of other days are refused, and rolls it up. */
export async function loadPostgres(db: Pool, events: readonly UsageEvent[]): Promise<void> {
  // No partition is dropped on the way.
  await db.query(
    `insert into analytics_settings (workspace_id, verifications_days, ratelimits_days, ratelimits_minute_days, ratelimits_hour_days,
                                     ratelimits_day_days, ratelimits_month_days)
     values ($1, 400, 400, 400, 400, 400, 400)`,
    [MAIN],
  );
  let nowMs = 0;
  const store = new PostgresAnalytics({
    db,
    nowMs: () => nowMs,
    log: pino({ level: "silent" }),
    metrics: new Registry(),
  });
  for (const [day, workspaces] of byDayAndWorkspace(events)) {
    nowMs = Date.parse(day) + DAY_MS - 1;
    await store.maintain(nowMs);
    for (const [workspaceId, own] of workspaces) {
      const lines = own.map((event) => JSON.stringify(event)).join("\n");
      const { stored } = await store.ingest(new EventLines(workspaceId, lines), nowMs);
      if (stored !== own.length) throw new Error(`${stored} of ${own.length} events of ${day} were stored`);
    }
    while (await store.rollUp());
  }
  await db.query("analyze");
}

const LIMITS: QueryLimits = {
  rowsMax: 10_000,
  timeoutMs: 30_000,
  memoryBytesMax: 1_000_000_000,
  answerBytesMax: 64 * 1024 * 1024,
};
const SCOPE: QueryScope = {
  workspaceId: MAIN,
  within: undefined,
  nowMs: NOW_MS,
  visibleFrom: {
    raw: VISIBLE_FROM_MS,
    minute: VISIBLE_FROM_MS,
    hour: VISIBLE_FROM_MS,
    day: VISIBLE_FROM_MS,
    month: VISIBLE_FROM_MS,
  },
};

export interface Side {
  /** Throws `Refused` when the query is refused. */
  ask(query: CorpusQuery): Promise<Answer>;
  close(): Promise<void>;
}

/** The answer is a 400; the message says why. */
export class Refused extends Error {}

export function openPostgresSide(databaseUrl: string): Side {
  const warnings: unknown[] = [];
  const reader = openPostgresReader({ databaseUrl, log: { warn: (about) => void warnings.push(about) } });
  return {
    ask: async ({ query, of = "verifications" }) => {
      const emitted = asRefused(query, () => {
        const checked = readQuery(query, { of, nowMs: NOW_MS, visibleFrom: SCOPE.visibleFrom });
        return emitForPostgres(resolveQuery(checked), {
          nowMs: NOW_MS,
          rowsMax: LIMITS.rowsMax,
          workspaceId: SCOPE.workspaceId,
        });
      });
      // Rows are compared by position, and names may be equal.
      const columns = emitted.columns.map(({ type }, index) => ({ type, name: String(index) }));
      try {
        const { rowsJson } = await reader.query({ ...emitted, columns }, { scope: SCOPE, limits: LIMITS });
        const rows = JSON.parse(rowsJson, readCell) as Record<string, unknown>[];
        return {
          names: emitted.columns.map(({ name }) => name),
          rows: rows.map((row) => columns.map(({ name }) => row[name])),
        };
      } catch (error) {
        // A fault of ours, which the reader has logged.
        const fault = warnings.pop();
        if (fault !== undefined)
          throw new Error(`${emitted.text}\n${JSON.stringify(emitted.values)}`, { cause: fault });
        if (error instanceof QueryRefused && error.reason === "query") throw new Refused(error.message);
        throw error;
      }
    },
    close: () => reader.close(),
  };
}

function asRefused<T>(text: string, translate: () => T): T {
  try {
    return translate();
  } catch (error) {
    if (error instanceof QueryProblem) throw new Refused(explainProblem(error, text));
    throw error;
  }
}

/** A pool of the loader's, closed by it. */
export async function withPool(databaseUrl: string, work: (db: Pool) => Promise<void>): Promise<void> {
  const db = createPool(databaseUrl, { connectionsMax: 3 });
  try {
    await work(db);
  } finally {
    await db.end();
  }
}
