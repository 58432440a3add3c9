import { performance } from "node:perf_hooks";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import type { Closeable } from "../edge/closeable.ts";
import type { Edge } from "../edge/open.ts";
import type { Projection } from "../edge/projection/contract.ts";
import { within } from "../edge/redis/script.ts";
import { DEGRADATIONS, type DegradationReason, type Health, judgeHealth, type Observation, REASONS } from "./health.ts";
import { createPool } from "./store/pool.ts";

const LOOK_EVERY_MS = 1000;
const ANSWER_MS_MAX = 2000;
/** A restart that nobody noticed leaves no line, and neither does the moment before the first heartbeat. */
const LOGGED_AFTER_LOOKS = 3;
/** Whether the store evicts changes by hand only. */
const EVICTION_EVERY_LOOKS = 30;
const DROPPED_LATELY_MS = 60_000;

export interface HealthWatch extends Closeable {
  /** What the last look found: a probe is answered at once, however slowly Postgres or the store answer. */
  current(): Health;
}

/**
 * Looks at everything once a second. A degradation is exported at once, logged when it has lasted for a few looks, and logged
 * again when it has ended. Resolves after the first look.
 */
export async function watchHealth(parts: {
  databaseUrl: string;
  edge: Edge;
  projection: Pick<Projection, "feedStaleness" | "stalenessMs">;
  log: Logger;
  metrics: Registry;
}): Promise<HealthWatch> {
  const { edge, projection, log, metrics } = parts;
  // A connection of its own: when traffic takes all others, Postgres is busy, not away.
  const db = createPool(parts.databaseUrl, {
    connectionsMax: 1,
    applicationName: "postern-health",
    connectMsMax: ANSWER_MS_MAX,
  });
  /** For how many looks in a row. */
  const lasting = new Map<DegradationReason, number>();
  let health: Health;
  let looks = 0;
  let postgresSeenAt = performance.now();
  let storeEvicts = false;
  let storeAnswered = false;
  let dropped = edge.sink.dropped();
  let droppedAt = Number.NEGATIVE_INFINITY;

  async function look(): Promise<Observation> {
    const [postgresAnswers, storeAnswers] = await Promise.all([
      answers(async () => {
        const client = await db.connect();
        try {
          await within(ANSWER_MS_MAX, client.query("select 1"));
          client.release();
        } catch (error) {
          // One that does not answer would hold up the next look as well.
          client.release(true);
          throw error;
        }
      }),
      answers(() => edge.ping()),
    ]);
    if (storeAnswers && (!storeAnswered || looks % EVICTION_EVERY_LOOKS === 0)) {
      // One that fails here is found away by the next look.
      await answers(async () => {
        const { evictionPolicy = "noeviction" } = await within(ANSWER_MS_MAX, edge.info());
        storeEvicts = evictionPolicy !== "noeviction";
      });
    }
    storeAnswered = storeAnswers;
    looks += 1;
    const nowMs = performance.now();
    if (postgresAnswers) postgresSeenAt = nowMs;
    if (edge.sink.dropped() > dropped) droppedAt = nowMs;
    dropped = edge.sink.dropped();
    return {
      postgresAwayMs: postgresAnswers ? 0 : nowMs - postgresSeenAt,
      storeAnswers,
      storeEvicts,
      feedStalenessMs: projection.feedStaleness().ms,
      stalenessMs: projection.stalenessMs(),
      eventsDroppedLately: nowMs - droppedAt < DROPPED_LATELY_MS,
    };
  }

  function logChanges(before: Health, now: Health): void {
    for (const reason of REASONS) {
      if (now.degradations.includes(reason)) {
        const looks = (lasting.get(reason) ?? 0) + 1;
        lasting.set(reason, looks);
        if (looks === LOGGED_AFTER_LOOKS) log.warn({ degradation: reason }, DEGRADATIONS[reason]);
      } else if ((lasting.get(reason) ?? 0) >= LOGGED_AFTER_LOOKS) {
        lasting.delete(reason);
        log.info({ degradation: reason }, "no longer degraded");
      } else lasting.delete(reason);
    }
    if (before.ready && !now.ready) log.error({ degradations: now.degradations }, "not ready");
    if (!before.ready && now.ready) log.info("ready again");
  }

  health = judgeHealth(await look());
  let isClosed = false;
  let timer: NodeJS.Timeout;
  let turn: Promise<void> = Promise.resolve();
  const next = (): void => {
    turn = look().then((seen) => {
      if (isClosed) return;
      const before = health;
      health = judgeHealth(seen);
      logChanges(before, health);
      timer = setTimeout(next, LOOK_EVERY_MS);
    });
  };
  timer = setTimeout(next, LOOK_EVERY_MS);
  exportHealth(metrics, () => health);
  return {
    current: () => health,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await turn;
      await db.end();
    },
  };
}

function exportHealth(metrics: Registry, current: () => Health): void {
  new Gauge({
    name: "postern_degraded",
    help: "1 while something is wrong that does not keep this replica from serving, by reason",
    labelNames: ["reason"],
    registers: [metrics],
    collect() {
      const { degradations } = current();
      for (const reason of REASONS) {
        this.set({ reason }, degradations.includes(reason) ? 1 : 0);
      }
    },
  });
  new Gauge({
    name: "postern_ready",
    help: "1 while this replica can serve something",
    registers: [metrics],
    collect() {
      this.set(current().ready ? 1 : 0);
    },
  });
}

/** Whether it did not throw: what is wrong is told by what does not answer, and not by how. */
async function answers(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch {
    return false;
  }
}
