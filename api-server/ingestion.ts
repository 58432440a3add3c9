import type { Counter, Registry } from "prom-client";
import type { Closeable } from "../edge/closeable.ts";
import type { EventSource } from "../edge/events/contract.ts";
import { type AnalyticsStore, AnalyticsUnavailable } from "./analytics/contract.ts";
import { type LoopOptions, startLoop } from "./background.ts";
import { Ingester } from "./ingest/ingester.ts";

const INGEST_EVERY_MS = 200;
const BUDGET_EVERY_MS = 1000;
/** How often is asked whether a roll-up is due. */
const ROLL_UP_EVERY_MS = 500;
const MAINTAIN_EVERY_MS = 600_000;

export interface Ingestion {
  readonly loops: readonly Closeable[];
  /** Stores what is left in the streams, at shutdown. */
  drain(): Promise<void>;
  /** When a round last ended without a failure, by `performance.now()`. */
  lastRoundMs(): number;
}

/**
 * Everything that is done with usage events, in an api-server or in a process of its own. Any number of processes may do so: the
 * streams give each portion to one of them, and a roll-up, the partitions and the budget are the work of one at a time.
 */
export async function startIngestion(parts: {
  store: Pick<AnalyticsStore, "ingest" | "portions" | "rollUp" | "maintain">;
  source: EventSource;
  /** Memory that all event streams together may use. */
  bytesMax: number;
  workspaceIds: () => readonly string[];
  nowMs: () => number;
  log: LoopOptions["log"];
  failures: Counter<"loop">;
  metrics: Registry;
}): Promise<Ingestion> {
  const { store, workspaceIds, nowMs, log, failures } = parts;
  const ingester = new Ingester(parts);
  await store.maintain(nowMs()).catch((error: unknown) => {
    // Events wait in their streams until the store comes back; the API does not need it.
    if (!(error instanceof AnalyticsUnavailable)) throw error;
    log.warn({ err: error }, "the store of usage events does not answer; events wait");
  });
  let lastRoundMs = performance.now();
  const loop = (name: string, everyMs: number, work: () => Promise<boolean>) =>
    startLoop({ name, everyMs, work, log, failures });
  return {
    loops: [
      loop("ingest", INGEST_EVERY_MS, async () => {
        const isMore = await ingester.round(workspaceIds());
        lastRoundMs = performance.now();
        return isMore;
      }),
      loop("events-budget", BUDGET_EVERY_MS, async () => {
        await ingester.keepBudget(workspaceIds());
        return false;
      }),
      loop("roll-up", ROLL_UP_EVERY_MS, () => store.rollUp({ patient: true })),
      loop("analytics", MAINTAIN_EVERY_MS, () => store.maintain(nowMs())),
    ],
    drain: async () => {
      while (await ingester.round(workspaceIds(), { all: true }));
    },
    lastRoundMs: () => lastRoundMs,
  };
}
