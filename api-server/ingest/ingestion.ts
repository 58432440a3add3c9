import type { Counter, Registry } from "prom-client";
import { type AnalyticsStore, AnalyticsUnavailable } from "../../analytics/contract.ts";
import type { Closeable } from "../../edge/closeable.ts";
import type { EventSource } from "../../edge/events/contract.ts";
import { type LoopOptions, startLoop } from "../background/loop.ts";
import { IngestMetrics } from "./ingest-metrics.ts";
import { Ingester } from "./ingester.ts";

const INGEST_EVERY_MS = 200;
/**
 * Pause of a reader after a round, as a multiple of the round's duration. The pause leaves most of the CPU time for requests on the same
 * machine. A reader that is behind does not pause.
 */
const PAUSE = { timesTheRound: 3, msMax: 1_000 };
const BUDGET_EVERY_MS = 1000;
/** Interval between two checks for a due roll-up. */
const ROLL_UP_EVERY_MS = 500;
const MAINTAIN_EVERY_MS = 600_000;

export interface Ingestion {
  readonly loops: readonly Closeable[];
  /** Stores the events that remain in the streams, at shutdown. */
  drain(): Promise<void>;
  /** Time (`performance.now()`) of the last successful batch of the reader that is furthest behind. */
  lastRoundMs(): number;
}

/**
 * Starts the processing of usage events, in an api-server or in a separate process. Any number of processes may do so: the streams deliver
 * each batch to only one process, and only one process at a time rolls up events, maintains the partitions or enforces the memory budget.
 */
export async function startIngestion(parts: {
  store: Pick<AnalyticsStore, "ingest" | "portions" | "rollUp" | "maintain">;
  /** Readers of the streams. They run concurrently; each stores one batch at a time. */
  sources: readonly [EventSource, ...EventSource[]];
  /** Maximum memory of all event streams together, in bytes. */
  bytesMax: number;
  workspaceIds: () => readonly string[];
  nowMs: () => number;
  log: LoopOptions["log"];
  failures: Counter<"loop">;
  metrics: Registry;
}): Promise<Ingestion> {
  const { store, workspaceIds, nowMs, log, failures } = parts;
  const metrics = new IngestMetrics(parts.metrics);
  const ingesters = parts.sources.map((source) => new Ingester({ ...parts, source, metrics }));
  const [events] = parts.sources;
  await store.maintain(nowMs()).catch((error: unknown) => {
    // Until the analytics store is available, events stay in their streams, and the API works without the store.
    if (!(error instanceof AnalyticsUnavailable)) throw error;
    log.warn({ err: error }, "the analytics store does not respond; events wait");
  });
  const lastRoundsMs = ingesters.map(() => performance.now());
  const loop = (name: string, everyMs: number, work: LoopOptions["work"]) =>
    startLoop({ name, everyMs, work, log, failures });
  return {
    loops: [
      ...ingesters.map((ingester, n) =>
        loop("ingest", INGEST_EVERY_MS, async () => {
          const startedMs = performance.now();
          const remaining = await ingester.round(workspaceIds());
          const endedMs = performance.now();
          lastRoundsMs[n] = endedMs;
          if (remaining === "nothing") return false;
          return remaining === "behind" ? true : Math.min(PAUSE.msMax, PAUSE.timesTheRound * (endedMs - startedMs));
        }),
      ),
      loop("events-budget", BUDGET_EVERY_MS, async () => {
        metrics.kept(await events.keepWithin(workspaceIds(), parts.bytesMax));
        return false;
      }),
      loop("roll-up", ROLL_UP_EVERY_MS, () => store.rollUp({ patient: true })),
      loop("analytics", MAINTAIN_EVERY_MS, () => store.maintain(nowMs())),
    ],
    drain: async () => {
      const drained = ingesters.map(async (ingester) => {
        while ((await ingester.round(workspaceIds(), { all: true })) !== "nothing");
      });
      await Promise.all(drained);
    },
    lastRoundMs: () => Math.min(...lastRoundsMs),
  };
}
