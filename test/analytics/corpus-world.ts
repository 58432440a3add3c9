import type { AnalyticsSettingsRow } from "../../api-server/db/analytics-limits.ts";
import { createTestClickhouse } from "../harness/clickhouse.ts";
import { corpusEvents, KEPT_DAYS, MAIN, NOW_MS, SECOND, VISIBLE_FROM_MS } from "./events.ts";
import { loadClickhouse, loadPostgres } from "./load.ts";
import { loadOracle } from "./oracle.ts";
import { openServed, type Served } from "./served.ts";

/** A workspace of the events, and what it sees in ClickHouse's own flat tables. */
export interface Seen {
  readonly workspaceId: string;
  readonly rootKey: string;
  readonly oracleUrl: string;
}

export interface CorpusWorld {
  readonly served: Served;
  readonly main: Seen;
  readonly second: Seen;
  close(): Promise<void>;
}

const SETTINGS: Partial<AnalyticsSettingsRow> = {
  timeout_ms: 30_000,
  response_bytes_max: 64 * 1024 * 1024,
  queries_per_hour: 1_000_000_000,
  run_ms_per_hour: 1_000_000_000_000,
};
const keptFor = (days: number): Partial<AnalyticsSettingsRow> => ({
  verifications_days: days,
  ratelimits_days: days,
  ratelimits_minute_days: days,
  ratelimits_hour_days: days,
  ratelimits_day_days: days,
  ratelimits_month_days: days,
});
/** While events of the whole month are loaded, day by day, none is dropped. */
const WHILE_LOADING = keptFor(400);

/** Loads the events into both stores of the API, and those of two workspaces into flat tables of ClickHouse. */
export async function openCorpusWorld(): Promise<CorpusWorld> {
  const events = corpusEvents();
  const seenBy = (id: string) => events.filter(({ workspaceId }) => workspaceId === id);
  const served = await openServed({ nowMs: NOW_MS });
  const [one, other] = [await createTestClickhouse(), await createTestClickhouse()];
  const keys = {
    main: await served.addWorkspace(MAIN, { ...SETTINGS, ...WHILE_LOADING }),
    second: await served.addWorkspace(SECOND, { ...SETTINGS, ...keptFor(KEPT_DAYS) }),
  };
  await Promise.all([
    loadPostgres(served.db, events),
    loadClickhouse(served.clickhouse.url, events)
      .then(() => loadOracle(one.url, seenBy(MAIN), VISIBLE_FROM_MS))
      .then(() => loadOracle(other.url, seenBy(SECOND), VISIBLE_FROM_MS)),
  ]);
  await served.setLimits(MAIN, { ...SETTINGS, ...keptFor(KEPT_DAYS) });
  return {
    served,
    main: { workspaceId: MAIN, rootKey: keys.main, oracleUrl: one.url },
    second: { workspaceId: SECOND, rootKey: keys.second, oracleUrl: other.url },
    close: async () => {
      await served.close();
      await one.drop();
      await other.drop();
    },
  };
}
