import type pg from "pg";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import type { CreditStore } from "../../edge/credits/contract.ts";
import { type Closeable, ProjectionChanged, type RecordWriter } from "../../edge/projection/contract.ts";
import { tryLock } from "../store/advisory-locks.ts";
import { createNamedClient } from "../store/named-client.ts";
import { countOutbox, nextProjectionVersion, OUTBOX_CHANNEL } from "../store/outbox.ts";
import { customTypes } from "../store/pool.ts";
import { findTimeline } from "../store/timeline.ts";
import { listWorkspaceIds } from "../store/workspaces.ts";
import { rebuild, whyRebuild } from "./rebuild.ts";
import { carryRound, ROUND_MAX } from "./round.ts";

/*
 * Carries changes from Postgres to the shared store. Of all api-servers one does, the holder of an advisory lock:
 *
 *   waiting ──lock taken──► leading ──connection lost, failure──► waiting (after a while)
 *
 * Leading, it carries what is in the outbox whenever a trigger notifies, and once a second in any case; and once a second it
 * looks whether the store is still the one that it knows, and writes a heartbeat. The lock is the connection's, so that a
 * relay that lost it cannot go on believing that it leads: its next statement fails.
 */

const TICK_MS = 1000;
/** Short, because a store that came back from an old snapshot gives credits twice until the relay has looked at it. */
const RETRY_MAX_MS = 1000;
/** Between two looks at a store that turned out to hold another projection. */
const LOOK_AGAIN_MS = 100;
const DEPTH_SHOWN_MAX = 100_000;

export interface RelayOptions {
  readonly databaseUrl: string;
  readonly writer: RecordWriter;
  readonly credits: CreditStore;
  readonly log: Logger;
  readonly metrics: Registry;
  readonly newProjectionId: () => string;
}

export interface Relay extends Closeable {
  /** Whether this process is the one that relays. */
  isLeading(): boolean;
}

/** Starts the relay; it goes on until closed, whatever becomes of Postgres and the store meanwhile. */
export function startRelay(options: RelayOptions): Relay {
  const relay = new RelayLoop(options);
  relay.start();
  return relay;
}

/** A write that the store did not take under this projection. */
interface Refused {
  readonly projectionId: string;
  readonly reason: string;
}

class RelayLoop implements Relay {
  readonly #options: RelayOptions;
  readonly #metrics: ReturnType<typeof createMetrics>;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #leading = false;
  /** In a row. */
  #failures = 0;
  /** There may be something to do: set by notifications, cleared before the outbox is read. */
  #woken = false;
  /** Ends the waiting that is under way. */
  #endPause: () => void = () => undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#metrics = createMetrics(options.metrics);
  }

  isLeading(): boolean {
    return this.#leading;
  }

  start(): void {
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#wake();
    await this.#running;
  }

  #wake(): void {
    this.#woken = true;
    this.#endPause();
  }

  get #isClosing(): boolean {
    return this.#stop.signal.aborted;
  }

  async #run(): Promise<void> {
    while (!this.#isClosing) {
      try {
        const hasLed = await this.#session();
        this.#failures = 0;
        if (!hasLed) await this.#pause(TICK_MS);
      } catch (error) {
        if (this.#isClosing) return;
        this.#failures += 1;
        this.#metrics.failures.inc();
        this.#woken = false;
        const delayMs = Math.min(RETRY_MAX_MS, 100 * 2 ** this.#failures) * (0.5 + Math.random() / 2);
        if (this.#failures === 1) this.#options.log.error({ err: error }, "relay failed; it goes on trying");
        await this.#pause(delayMs);
      }
    }
  }

  /** One connection's worth of relaying; false at once when somebody else leads. */
  async #session(): Promise<boolean> {
    const db = createNamedClient({
      connectionString: this.#options.databaseUrl,
      application_name: "postern-relay",
      connectionTimeoutMillis: 5000,
      // A connection that hangs must not keep the lock, and everybody waiting.
      query_timeout: 30_000,
      keepAlive: true,
      types: customTypes,
    });
    let lost: Error | undefined;
    db.on("error", (error) => {
      lost = error;
      this.#wake();
    });
    try {
      await db.connect();
      if (!(await tryLock(db, "relay"))) return false;
      this.#leading = true;
      this.#metrics.leading.set(1);
      db.on("notification", () => this.#wake());
      await db.query(`listen ${OUTBOX_CHANNEL}`);
      await this.#lead(db, () => lost);
      return true;
    } finally {
      this.#leading = false;
      this.#metrics.leading.set(0);
      await db.end().catch(() => undefined);
    }
  }

  async #lead(db: pg.Client, lost: () => Error | undefined): Promise<void> {
    const { writer } = this.#options;
    let projectionId: string | undefined;
    let refused: Refused | undefined;
    // A server that was promoted or restored meanwhile has ended this connection, so once is enough.
    const timeline = await findTimeline(db);
    let lastHead = 0;
    let tickAt = 0;
    while (!this.#isClosing) {
      const failure = lost();
      if (failure !== undefined) throw failure;
      try {
        if (projectionId === undefined || performance.now() >= tickAt) {
          tickAt = performance.now() + TICK_MS;
          const checked = await this.#checkStore(db, { lastHead, refused, timeline });
          refused = undefined;
          projectionId = checked.projectionId;
          lastHead = checked.head;
          await this.#beat(db, projectionId);
          if (this.#failures > 0) this.#options.log.info("relay works again");
          this.#failures = 0;
        } else {
          await this.#carryAll({ db, writer, projectionId });
        }
      } catch (error) {
        if (!(error instanceof ProjectionChanged)) throw error;
        refused = projectionId === undefined ? undefined : { projectionId, reason: error.message };
        projectionId = undefined;
      }
      await this.#pause(projectionId === undefined ? LOOK_AGAIN_MS : Math.max(0, tickAt - performance.now()));
    }
  }

  /** The projection in the store, made anew when it is not the one that it should be. */
  async #checkStore(
    db: pg.Client,
    { lastHead, refused, timeline }: { lastHead: number; refused: Refused | undefined; timeline: string | undefined },
  ): Promise<{ projectionId: string; head: number }> {
    const { writer, credits, log } = this.#options;
    const state = await writer.state();
    const lastVersion = await nextProjectionVersion(db);
    // The whole may look right while the mark of one workspace is gone: then it is what was refused that tells.
    const lost = refused?.projectionId === state.projectionId ? refused?.reason : undefined;
    const reason = (await whyRebuild(db, state, { lastHead, lastVersion, timeline })) ?? lost;
    if (reason === undefined && state.projectionId !== undefined) {
      return { projectionId: state.projectionId, head: state.head };
    }
    this.#metrics.rebuilds.inc();
    const projectionId = this.#options.newProjectionId();
    await rebuild(
      { db, writer, projectionId },
      { reason: reason ?? "", state, timeline, credits, log, isClosing: () => this.#isClosing },
    );
    return { projectionId, head: 0 };
  }

  /** Everything that was committed before T is projected before T is announced. */
  async #beat(db: pg.Client, projectionId: string): Promise<void> {
    const { writer } = this.#options;
    const asOfMs = await writer.nowMs();
    await this.#carryAll({ db, writer, projectionId });
    if (this.#isClosing) return;
    await writer.heartbeat(projectionId, asOfMs, await listWorkspaceIds(db));
    this.#metrics.asOf.set(asOfMs / 1000);
    this.#metrics.depth.set(await countOutbox(db, { max: DEPTH_SHOWN_MAX }));
  }

  /** Until a round was not full: then all that was visible at its beginning is carried. */
  async #carryAll(projecting: { db: pg.Client; writer: RecordWriter; projectionId: string }): Promise<void> {
    while (!this.#isClosing) {
      this.#woken = false;
      const carried = await carryRound(projecting);
      this.#metrics.carried.inc(carried);
      if (carried < ROUND_MAX) return;
    }
  }

  /** Waits until woken or `ms` have passed; not at all when a wake came since the outbox was last read. */
  async #pause(ms: number): Promise<void> {
    if (this.#woken || this.#isClosing) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function createMetrics(registry: Registry) {
  const registers = [registry];
  return {
    leading: new Gauge({ name: "postern_relay_leading", help: "1 while this process relays changes", registers }),
    depth: new Gauge({ name: "postern_outbox_depth", help: "Marks that wait in the outbox", registers }),
    asOf: new Gauge({
      name: "postern_relay_as_of_timestamp_seconds",
      help: "Everything committed before this moment has been projected",
      registers,
    }),
    carried: new Counter({ name: "postern_relay_marks_total", help: "Marks carried from the outbox", registers }),
    rebuilds: new Counter({
      name: "postern_relay_rebuilds_total",
      help: "Times everything was projected anew",
      registers,
    }),
    failures: new Counter({
      name: "postern_relay_failures_total",
      help: "Times the relay had to begin anew",
      registers,
    }),
  };
}
