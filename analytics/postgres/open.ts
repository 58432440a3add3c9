import type { DatabaseUrl } from "../../postgres/pool.ts";
import type { AnalyticsStore } from "../contract.ts";
import { openPostgresReader } from "./run.ts";
import { PostgresAnalytics, type PostgresAnalyticsOptions } from "./store.ts";

/** Opens the analytics store in the main database, with separate connections for caller queries. Connects on first use. */
export function openPostgresAnalytics(
  options: PostgresAnalyticsOptions & { readonly databaseUrl: DatabaseUrl },
): AnalyticsStore {
  const store = new PostgresAnalytics(options);
  const reader = openPostgresReader(options);
  return {
    kind: store.kind,
    ingest: (batch, nowMs) => store.ingest(batch, nowMs),
    rollUp: (how) => store.rollUp(how),
    maintain: (nowMs) => store.maintain(nowMs),
    countVerifications: (question) => store.countVerifications(question),
    countLatencies: (question) => store.countLatencies(question),
    uncountedForMs: (workspaceId) => store.uncountedForMs(workspaceId),
    query: (query, run) => reader.query(query, run),
    close: async () => {
      await Promise.all([store.close(), reader.close()]);
    },
  };
}
