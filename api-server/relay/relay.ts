import type { Client } from "pg";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { backoffMs } from "../../core/backoff.ts";
import type { Closeable } from "../../edge/closeable.ts";
import type { CreditStore } from "../../edge/credits/contract.ts";
import { ProjectionChanged, type RecordWriter } from "../../edge/projection/contract.ts";
import type { DatabaseUrl } from "../../postgres/pool.ts";
import {
  countOutbox,
  deleteOldRecentChanges,
  deleteOutbox,
  listOldestEntries,
  listWaitingWorkspaces,
  newestEntry,
  nextProjectionVersion,
} from "../db/outbox.ts";
import { findTimeline } from "../db/timeline.ts";
import { listWorkspaceIds } from "../db/workspaces.ts";
import { BackgroundRebuild } from "./background-rebuild.ts";
import { connectWorker, type Leadership, takeLead } from "./leadership.ts";
import { createRelayMetrics, type RelayMetrics } from "./metrics.ts";
import { beginProjection, ensureNames, RECENT_KEPT_MS, whyRebuild } from "./rebuild.ts";
import { FairScheduler, relayBatch, TableEmptied } from "./round.ts";
import { Watermark } from "./watermark.ts";

/*
 * Relays changes from Postgres to Redis. One of the api-servers does so, see leadership.ts:
 *
 *   waiting ──lead taken──► leading ──lead lost, failure──► waiting (with backoff)
 *
 * The leader relays the outbox entries whenever it is notified, and in any case once a second. Also once a second it
 * checks whether Redis still holds the expected projection, and writes a heartbeat with the time up to which each workspace's
 * changes have been delivered. If everything has to be projected again, that runs in parallel on other connections.
 */

const TICK_MS = 1000;
/**
 * Backoff after a failure. It is short, because a Redis that was restored from an old snapshot grants spent credits again until the relay
 * has checked it.
 */
const RETRY = { firstMs: 200, maxMs: 1000, random: Math.random };
/** Interval between two checks of Redis after a write has found another projection there. */
const RECHECK_MS = 100;
const DEPTH_SHOWN_MAX = 100_000;
/**
 * Maximum number of expired rows that are deleted from `recent_changes` per tick. It is higher than the number that the relay can add in
 * that time.
 */
const TIDIED_ROWS_MAX = 10_000;
/** Page size of the list of workspaces with pending entries. */
const WAITING_PAGE = 1000;

export interface RelayOptions {
  readonly databaseUrl: DatabaseUrl;
  readonly writer: RecordWriter;
  readonly credits: CreditStore;
  readonly log: Logger;
  readonly metrics: Registry;
  readonly newProjectionId: () => string;
}

export interface Relay extends Closeable {
  /** Whether this process is the leader. */
  isLeading(): boolean;
}

/** Starts the relay. It runs until closed, and survives failures of Postgres and Redis. */
export function startRelay(options: RelayOptions): Relay {
  const relay = new RelayLoop(options);
  relay.start();
  return relay;
}

/** State of the projection in Redis. */
interface Projected {
  /** Timeline of Postgres. */
  readonly timeline: string | undefined;
  /** Id of the projection; `undefined` if Redis must be checked before the next write. */
  id: string | undefined;
  /** Number of entries in the global stream at the last check. */
  head: number;
  /** The last write that Redis rejected under this projection; `undefined` if there is none. */
  refused: { readonly projectionId: string; readonly error: ProjectionChanged } | undefined;
}

class RelayLoop implements Relay {
  readonly #options: RelayOptions;
  readonly #metrics: RelayMetrics;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #leading = false;
  /** Number of consecutive failures. */
  #failures = 0;
  /** Whether the outbox may have new entries. Notifications set it, and it is cleared before the outbox is read. */
  #woken = false;
  /** Ends the current pause. */
  #endPause: () => void = () => undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#metrics = createRelayMetrics(options.metrics);
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
        if (this.#failures === 1) this.#options.log.error({ err: error }, "relay failed; retrying");
        await this.#pause(backoffMs(this.#failures, RETRY));
      }
    }
  }

  /** Relays changes for as long as this process is the leader. Returns false immediately if another process leads. */
  async #session(): Promise<boolean> {
    const { databaseUrl } = this.#options;
    const lead = await takeLead(databaseUrl, () => this.#wake());
    if (lead === undefined) return false;
    lead.lost.addEventListener("abort", () => this.#wake());
    let db: Client | undefined;
    try {
      db = await connectWorker(databaseUrl);
      this.#leading = true;
      this.#metrics.leading.set(1);
      await this.#lead(db, lead);
      return true;
    } finally {
      this.#leading = false;
      this.#metrics.leading.set(0);
      await Promise.all([lead.close(), db?.end().catch(() => undefined)]);
    }
  }

  async #lead(db: Client, lead: Leadership): Promise<void> {
    // Reading the timeline once is enough, because a promotion or a restore of the server ends this connection.
    const projected: Projected = { timeline: await findTimeline(db), head: 0, id: undefined, refused: undefined };
    const turns = new FairScheduler();
    const rebuilding = new BackgroundRebuild({
      ...this.#options,
      rebuilt: this.#metrics.rebuilt,
      onFailed: () => this.#wake(),
    });
    let watermark = new Watermark();
    let tickAt = 0;
    try {
      while (!this.#isClosing) {
        lead.lost.throwIfAborted();
        rebuilding.throwIfFailed();
        this.#woken = false;
        let isFull = false;
        try {
          const isTick = projected.id === undefined || performance.now() >= tickAt;
          if (isTick) {
            tickAt = performance.now() + TICK_MS;
            const before = projected.id;
            await this.#checkStore(db, projected, rebuilding);
            if (before !== projected.id) watermark = new Watermark();
            const asOfMs = await this.#options.writer.nowMs();
            watermark.scanned({ asOfMs, newest: await newestEntry(db) });
          }
          const { id: projectionId = "" } = projected;
          const round = await relayBatch({ db, writer: this.#options.writer, projectionId }, turns);
          this.#metrics.relayed.inc(round.relayed);
          isFull = round.isFull;
          rebuilding.ensureWorkspaces(projectionId, round.begun);
          if (isTick) {
            await deleteOldRecentChanges(db, { keptMs: RECENT_KEPT_MS, rowsMax: TIDIED_ROWS_MAX });
            await this.#beat(db, { projectionId, watermark, rebuilding });
            if (this.#failures > 0) this.#options.log.info("relay works again");
            this.#failures = 0;
          }
        } catch (error) {
          if (!(error instanceof ProjectionChanged)) throw error;
          projected.refused = projected.id === undefined ? undefined : { projectionId: projected.id, error };
          projected.id = undefined;
        }
        if (isFull) continue;
        await this.#pause(projected.id === undefined ? RECHECK_MS : Math.max(0, tickAt - performance.now()));
      }
    } finally {
      await rebuilding.close();
    }
  }

  /** Ensures that Redis contains the right projection, even if it is still incomplete. */
  async #checkStore(db: Client, projected: Projected, rebuilding: BackgroundRebuild): Promise<void> {
    const { writer, log, newProjectionId } = this.#options;
    const { timeline, refused } = projected;
    const isFirst = projected.id === undefined;
    const state = await writer.state();
    const lastVersion = await nextProjectionVersion(db);
    // If Redis has lost only the projection state of one workspace, the global state does not show the loss; the rejected write is then the
    // only sign.
    const lost = refused?.projectionId === state.projectionId ? refused?.error.message : undefined;
    const reason = (await whyRebuild(db, state, { lastHead: projected.head, lastVersion, timeline })) ?? lost;
    if (reason === undefined && state.projectionId !== undefined) {
      projected.id = state.projectionId;
      projected.head = state.head;
      if (!state.complete) rebuilding.ensure(state.projectionId);
      else if (isFirst) await ensureNames(db, state.projectionId);
    } else {
      this.#metrics.rebuilds.inc();
      await rebuilding.close();
      const projectionId = newProjectionId();
      await beginProjection({ db, writer }, { projectionId, reason: reason ?? "", state, timeline, log });
      // Deletes the entries now. This is safe because the rebuild starts later, and therefore reads the truncated tables in their current
      // state.
      if (refused?.error instanceof TableEmptied) await deleteOutbox(db, refused.error.seqs);
      projected.id = projectionId;
      projected.head = 0;
      rebuilding.ensure(projectionId);
    }
    projected.refused = undefined;
  }

  /** Writes to Redis the time up to which changes have been delivered: everything committed before this time has been projected. */
  async #beat(
    db: Client,
    {
      projectionId,
      watermark,
      rebuilding,
    }: { projectionId: string; watermark: Watermark; rebuilding: BackgroundRebuild },
  ): Promise<void> {
    const oldest = await oldestEntries(db);
    const until = watermark.until(oldest);
    if (until === undefined || this.#isClosing) return;
    const workspaceIds = await listWorkspaceIds(db);
    const { writer } = this.#options;
    const { isComplete } = rebuilding;
    const { begun, incomplete } = await writer.heartbeat(projectionId, until.asOfMs, workspaceIds, until.lagging);
    // During a full projection every workspace is incomplete, so none needs a projection of its own.
    rebuilding.ensureWorkspaces(projectionId, isComplete ? begun : [...begun, ...incomplete]);
    this.#metrics.asOf.set(until.lagging.values().reduce((a, b) => Math.min(a, b), until.asOfMs) / 1000);
    this.#metrics.lagging.set(until.lagging.size);
    this.#metrics.depth.set(await countOutbox(db, { max: DEPTH_SHOWN_MAX }));
  }

  /** Waits for `ms`, or until woken. Returns immediately if it was woken after the outbox was last read. */
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

/** Returns the sequence number of the oldest pending entry of each workspace with pending entries. */
async function oldestEntries(db: Client): Promise<Map<string, number>> {
  const oldest = new Map<string, number>();
  for (const bulk of [false, true]) {
    for (let after: string | undefined = ""; after !== undefined; ) {
      const workspaceIds = await listWaitingWorkspaces(db, { bulk, after, max: WAITING_PAGE });
      for (const [workspaceId, seq] of await listOldestEntries(db, { bulk, workspaceIds })) {
        oldest.set(workspaceId, Math.min(seq, oldest.get(workspaceId) ?? seq));
      }
      after = workspaceIds.length < WAITING_PAGE ? undefined : workspaceIds.at(-1);
    }
  }
  return oldest;
}
