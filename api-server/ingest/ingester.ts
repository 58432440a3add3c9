import type { Logger } from "pino";
import { type AnalyticsStore, AnalyticsUnavailable } from "../../analytics/contract.ts";
import { type EventSource, EventsUnavailable, type StreamDepth, type TakenEvents } from "../../edge/events/contract.ts";
import { isUnavailableForAll } from "../../postgres/failures.ts";
import type { IngestMetrics } from "./ingest-metrics.ts";
import { IngestScheduler } from "./turns.ts";

/*
 * Moves events from the streams into the analytics store, in rounds: one poll of all due streams, then one time slice for each stream with
 * entries, which stores one batch. A failure affects only its own workspace: it is counted, logged at intervals, and delays that
 * workspace's next time slice. A round ends early only if a database is unreachable for all workspaces.
 */

export interface IngesterOptions {
  readonly store: Pick<AnalyticsStore, "ingest" | "portions">;
  readonly source: EventSource;
  /** Returns the current time, Unix ms. It determines the days whose events are retained. */
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly metrics: IngestMetrics;
}

/** Whether events remain after a round. `behind`: some of them are old, or might soon exceed their workspace's quota. */
export type Remaining = "nothing" | "some" | "behind";

/** Age of the oldest pending event above which ingestion counts as behind. */
const BEHIND_MS = 10_000;

export class Ingester {
  readonly #options: IngesterOptions;
  readonly #metrics: IngestMetrics;
  readonly #turns = new IngestScheduler();

  constructor(options: IngesterOptions) {
    this.#options = options;
    this.#metrics = options.metrics;
  }

  /**
   * Runs one round. Returns whether events remain that the next round should store. With `all`, workspaces that are not due yet are
   * included. Throws if a database is unreachable.
   */
  async round(workspaceIds: readonly string[], { all = false }: { all?: boolean } = {}): Promise<Remaining> {
    const due = all ? [...workspaceIds] : this.#turns.due(workspaceIds, performance.now());
    if (due.length === 0) return "nothing";
    const { depths, setAside, failed } = await this.#options.source.measure(due);
    this.#metrics.recordDepths(due, depths);
    for (const { workspaceId, type } of setAside) this.#noteSetAside(workspaceId, type);
    for (const { workspaceId, error } of failed) this.#noteFailure(workspaceId, error);
    const asking = new Set(
      depths.filter((depth) => all || this.#isEnough(depth)).map(({ workspaceId }) => workspaceId),
    );
    const troubled = new Set([...setAside, ...failed].map(({ workspaceId }) => workspaceId));
    for (const id of due) {
      if (!asking.has(id) && !troubled.has(id)) this.#turns.ended(id, "nothing", performance.now());
    }
    let isMore = false;
    for (const workspaceId of due) {
      if (asking.has(workspaceId)) isMore = (await this.#turn(workspaceId)) || isMore;
    }
    if (!isMore) return "nothing";
    return depths.some(isBehind) ? "behind" : "some";
  }

  /** Returns whether the analytics store should store the pending events now, instead of waiting for a larger batch. */
  #isEnough({ bytes, ageMs }: StreamDepth): boolean {
    const { portions } = this.#options.store;
    return portions === undefined || bytes >= portions.bytesEnough || ageMs >= portions.ageMsEnough;
  }

  async #turn(workspaceId: string): Promise<boolean> {
    const { source } = this.#options;
    this.#turns.began(workspaceId);
    try {
      const { entries, unreadable } = await source.take(workspaceId, (events) => this.#store(events), {
        bytesEnough: this.#options.store.portions?.bytesEnough,
      });
      this.#metrics.omitted(unreadable);
      this.#turns.ended(workspaceId, entries > 0 ? "stored" : "nothing", performance.now());
      return entries > 0;
    } catch (error) {
      if (isForAll(error)) throw error;
      this.#noteFailure(workspaceId, error);
      return false;
    }
  }

  async #store(events: TakenEvents): Promise<void> {
    const { store, nowMs } = this.#options;
    this.#metrics.ingested(await store.ingest(events, nowMs()));
  }

  #noteFailure(workspaceId: string, error: unknown): void {
    this.#metrics.failed();
    const failures = this.#turns.ended(workspaceId, "failed", performance.now());
    if (isWorthALine(failures)) {
      this.#options.log.warn(
        { err: error, workspaceId, failures },
        "events of a workspace could not be stored; the others continue",
      );
    }
  }

  #noteSetAside(workspaceId: string, type: string): void {
    this.#metrics.setAside();
    const times = this.#turns.ended(workspaceId, "failed", performance.now());
    if (isWorthALine(times)) {
      this.#options.log.warn({ workspaceId, type }, "the key of a workspace's events was not a stream and was removed");
    }
  }
}

/** Returns whether the events are old, or use at least half of their workspace's quota. */
const isBehind = ({ bytes, capacityBytes, ageMs }: StreamDepth): boolean =>
  ageMs >= BEHIND_MS || bytes >= capacityBytes;

/** Logs the first, second, fourth and so on of consecutive failures, because an attacker can cause them indefinitely. */
const isWorthALine = (failures: number): boolean => Number.isInteger(Math.log2(failures));

/** Returns whether the error would occur in the same way for every other workspace. */
const isForAll = (error: unknown): boolean =>
  error instanceof EventsUnavailable || error instanceof AnalyticsUnavailable || isUnavailableForAll(error);
