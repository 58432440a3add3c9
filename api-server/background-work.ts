import { Counter, type Registry } from "prom-client";
import type { AnalyticsStore } from "../analytics/contract.ts";
import { defineMetrics, exported } from "../core/metric.ts";
import { utcDate } from "../core/utc-date.ts";
import type { Closeable } from "../edge/closeable.ts";
import type { Edge } from "../edge/open.ts";
import { createLoopFailures, startLoop } from "./background/loop.ts";
import { Retention, type RetentionDays } from "./background/retention.ts";
import { createFairScheduler, createRefusals } from "./background/workspace-turns.ts";
import { loadRequested, writeSpentBehind } from "./credits/loops.ts";
import { runRefill } from "./credits/refill.ts";
import { listWorkspaceIds } from "./db/workspaces.ts";
import type { Deps } from "./deps.ts";
import { KeyQueue } from "./domain/keys/key-queue.ts";
import { startIngestion } from "./ingest/ingestion.ts";

const WORKSPACES_EVERY_MS = 1000;
/** Interval at which missing credit counters are loaded. It is short, because a sidecar waits at most 250 ms for a counter. */
const LOAD_EVERY_MS = 100;
const WRITE_BEHIND_EVERY_MS = 500;
/**
 * Interval at which the Lua scripts are loaded. After a restart of Redis, pods that are not allowed to load scripts apply the
 * `onCounterFailure` of their policy until this process loads the scripts again.
 */
const SCRIPTS_EVERY_MS = 1000;
/**
 * Time slice of retention per workspace. It is long enough for seven statements. A workspace that needs longer continues in parallel with
 * the others.
 */
const RETENTION_TURN_MS = 30_000;
/** Pause between two retention batches, so that the database stays available during a long run. */
const RETENTION_EVERY_MS = 1000;
const REFILL_EVERY_MS = 30_000;
/** Pause between two batches of queued keys, so that a long queue occupies the process for only about half of the time. */
const KEY_QUEUE_EVERY_MS = 500;
const GATE_USERS_EVERY_MS = 60_000;
const ROOT_KEY_EVERY_MS = 5_000;
const ROOT_KEY_USES_EVERY_MS = 60_000;
const KEY_QUEUE_MEASURED_EVERY_MS = 10_000;

export const REFILL_METRICS = defineMetrics({
  failures: {
    name: "postern_refill_failures_total",
    type: "counter",
    help: "Keys that a run could not refill; the next run retries them",
    unit: "keys",
    bad: "Rising for hours: these keys have too few credits. See the log, or run `postern refill run`.",
  },
});

/** Starts all background work of an api-server except the relay. At shutdown, call `drain` to write pending data. */
export async function startBackgroundWork(parts: {
  deps: Deps;
  edge: Edge;
  metrics: Registry;
  /** Analytics store for usage events; `undefined` if other processes store the events. */
  ingestTo: Pick<AnalyticsStore, "ingest" | "rollUp" | "maintain"> | undefined;
  /** Maximum memory of all event streams together, in bytes. */
  eventsBytesMax: number;
  retentionDays: RetentionDays;
  workspaceIds: readonly string[];
  /** Registers the configured root key if it has changed. Called every 5 s. */
  followRootKey: () => Promise<void>;
  /** Deletes expired Redis users of gates. Called once a minute. */
  sweepGateUsers: () => Promise<void>;
}): Promise<{
  loops: Closeable[];
  drain: () => Promise<void>;
}> {
  const { deps, edge, metrics } = parts;
  const { db, credits, nowMs, log } = deps;
  let { workspaceIds } = parts;
  let isClosing = false;
  let refilledOn: string | undefined;
  const refillFailures = new Counter({ ...exported(REFILL_METRICS.failures), registers: [metrics] });
  const common = { log, failures: createLoopFailures(metrics) };
  const ingestion =
    parts.ingestTo &&
    (await startIngestion({
      store: parts.ingestTo,
      sources: [edge.events],
      bytesMax: parts.eventsBytesMax,
      workspaceIds: () => workspaceIds,
      nowMs,
      metrics,
      ...common,
    }));
  const retentionTurns = createFairScheduler({ loop: "retention", ...common, turnMsMax: RETENTION_TURN_MS });
  const retention = new Retention({ db, nowMs, days: parts.retentionDays, runFairly: retentionTurns, metrics });
  const recordRejection = createRefusals({ log, registry: metrics });
  const schedulerOf = (loop: string) => createFairScheduler({ loop, ...common });
  const [loadTurns, writeTurns] = [schedulerOf("credit-loads"), schedulerOf("credit-write-behind")];
  const keyQueue = new KeyQueue({ deps, runFairly: schedulerOf("key-queue"), metrics });
  const store = edge.credits;
  const load = () => loadRequested({ store, runFairly: loadTurns, recordRejection, workspaceIds, credits });
  const writeBehind = () => writeSpentBehind({ store, runFairly: writeTurns, recordRejection, workspaceIds, db });
  const loop = (name: string, everyMs: number, work: () => Promise<boolean | undefined>) =>
    startLoop({ name, everyMs, work, ...common });

  const refreshWorkspaces = async () => {
    workspaceIds = await listWorkspaceIds(db);
    return false;
  };
  // Loads the credits of a new workspace immediately. If loading fails, the credit loop retries it later.
  deps.projection.onDropped((ref) => {
    if (ref?.kind === "workspace" && !isClosing) refreshWorkspaces().catch(() => undefined);
  });
  const loops: Closeable[] = [
    // `close` sets the flag before it stops the loops, because a loop in the middle of a long time slice checks only the flag.
    {
      close: async () => {
        isClosing = true;
        keyQueue.close();
      },
    },
    loop("workspaces", WORKSPACES_EVERY_MS, refreshWorkspaces),
    loop("credit-loads", LOAD_EVERY_MS, load),
    loop("credit-write-behind", WRITE_BEHIND_EVERY_MS, writeBehind),
    ...(ingestion?.loops ?? []),
    loop("scripts", SCRIPTS_EVERY_MS, async () => {
      await edge.loadScripts();
      return false;
    }),
    loop("retention", RETENTION_EVERY_MS, async () => {
      await retention.round();
      return false;
    }),
    loop("key-queue", KEY_QUEUE_EVERY_MS, async () => {
      await keyQueue.round();
      return false;
    }),
    loop("key-queue-measure", KEY_QUEUE_MEASURED_EVERY_MS, async () => {
      await keyQueue.measure();
      return false;
    }),
    loop("gate-users", GATE_USERS_EVERY_MS, async () => {
      await parts.sweepGateUsers();
      return false;
    }),
    loop("root-key", ROOT_KEY_EVERY_MS, async () => {
      await parts.followRootKey();
      return false;
    }),
    loop("root-key-usage", ROOT_KEY_USES_EVERY_MS, async () => {
      await deps.rootKeyUsage.store(db);
      return false;
    }),
    loop("refill", REFILL_EVERY_MS, async () => {
      const today = utcDate(nowMs());
      if (refilledOn === today) return false;
      const done = await runRefill(deps, { today, isClosing: () => isClosing });
      if (done === undefined) return false;
      refillFailures.inc(done.failed);
      if (done.failed === 0) refilledOn = today;
      if (done.refilled > 0 || done.failed === 0) log.info({ today, ...done }, "refilled credits");
      return false;
    }),
  ];
  const drain = async () => {
    await edge.sink.flush();
    await ingestion?.drain();
    while (await writeBehind());
    await deps.rootKeyUsage.store(db);
  };
  return { loops, drain };
}
