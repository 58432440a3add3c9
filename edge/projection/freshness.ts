import { performance } from "node:perf_hooks";

/*
 * Computes from the received heartbeats how stale the data of each workspace may be.
 *
 * A heartbeat contains Redis time. The Redis clock may be set back by a failover, and the local monotonic clock stops while the machine
 * sleeps. So each timestamp is stored on both clocks, and its age is the larger of the two. A heartbeat is accepted if it proves newer data
 * on either clock, so that a heartbeat of an old clock that was ahead does not block those of the new clock.
 *
 * Invariant: an age is never too small because a clock went back.
 */

/**
 * Tolerance for a heartbeat that is ahead of the Redis time estimate. The estimate is never behind Redis, so such a heartbeat comes from
 * another clock or is forged, unless the clock was set since the last measurement, which can be 10 s old.
 */
export const AHEAD_MAX_MS = 5_000;

/** The same moment on both clocks: the store's and the monotonic one. */
interface Timestamp {
  readonly storeMs: number;
  readonly monotonicMs: number;
}

interface Heartbeat {
  readonly asOfMs: number;
  readonly lagging: ReadonlyMap<string, number>;
}

export interface FreshnessOptions {
  readonly storeNowMs: () => number | undefined;
  readonly monotonicMs?: () => number;
  /** Returns the current staleness of the restored data, for use until the first heartbeat. */
  readonly restoredMs?: (() => number) | undefined;
}

const NONE: ReadonlyMap<string, number> = new Map();

export class Freshness {
  readonly #storeNowMs: () => number | undefined;
  readonly #monotonicMs: () => number;
  readonly #restoredMs: (() => number) | undefined;
  /** Heartbeat time that applies to every workspace that does not lag. */
  #common: Timestamp | undefined;
  readonly #lagging = new Map<string, Timestamp>();
  /** Heartbeat that arrived before Redis time was known. */
  #unjudged: Heartbeat | undefined;

  constructor({ storeNowMs, monotonicMs = () => performance.now(), restoredMs }: FreshnessOptions) {
    this.#storeNowMs = storeNowMs;
    this.#monotonicMs = monotonicMs;
    this.#restoredMs = restoredMs;
  }

  /** Whether all data still comes from an earlier process. */
  get isRestored(): boolean {
    this.#evaluate();
    return this.#restoredMs !== undefined && this.#common === undefined;
  }

  /** Returns false for a heartbeat from the future, which is ignored. No time in `lagging` may be later than `asOfMs`. */
  observe(asOfMs: number, lagging: ReadonlyMap<string, number> = NONE): boolean {
    const now = this.#now();
    this.#unjudged = now === undefined ? { asOfMs, lagging } : undefined;
    if (now === undefined) return true;
    if (asOfMs > now.storeMs + AHEAD_MAX_MS) return false;
    this.#take({ asOfMs, lagging }, now);
    return true;
  }

  /** Returns the staleness of the workspace; without an argument, the maximum over all workspaces. */
  stalenessMs(workspaceId?: string): number {
    this.#evaluate();
    if (this.#common === undefined && this.#restoredMs !== undefined) return this.#restoredMs();
    const now = this.#now();
    if (workspaceId !== undefined) return ageMs(this.#lagging.get(workspaceId) ?? this.#common, now);
    let worstMs = ageMs(this.#common, now);
    for (const timestamp of this.#lagging.values()) worstMs = Math.max(worstMs, ageMs(timestamp, now));
    return worstMs;
  }

  /** Returns the staleness of the workspaces that do not lag. */
  ofStream(): { ms: number; laggingWorkspaces: number } {
    this.#evaluate();
    return { ms: ageMs(this.#common, this.#now()), laggingWorkspaces: this.#lagging.size };
  }

  #now(): Timestamp | undefined {
    const storeMs = this.#storeNowMs();
    return storeMs === undefined ? undefined : { storeMs, monotonicMs: this.#monotonicMs() };
  }

  #evaluate(): void {
    if (this.#unjudged !== undefined) this.observe(this.#unjudged.asOfMs, this.#unjudged.lagging);
  }

  #take({ asOfMs, lagging }: Heartbeat, now: Timestamp): void {
    const timestampOf = (storeMs: number): Timestamp => ({
      storeMs,
      monotonicMs: now.monotonicMs - Math.max(0, now.storeMs - storeMs),
    });
    const newer = (known: Timestamp | undefined, other: Timestamp): Timestamp =>
      known !== undefined && ageMs(known, now) <= ageMs(other, now) ? known : other;

    const before = this.#common;
    const common = newer(before, timestampOf(asOfMs));
    for (const workspaceId of new Set([...this.#lagging.keys(), ...lagging.keys()])) {
      const known = this.#lagging.get(workspaceId) ?? before;
      const timestamp = newer(known, timestampOf(lagging.get(workspaceId) ?? asOfMs));
      if (ageMs(timestamp, now) > ageMs(common, now)) this.#lagging.set(workspaceId, timestamp);
      else this.#lagging.delete(workspaceId);
    }
    this.#common = common;
  }
}

function ageMs(timestamp: Timestamp | undefined, now: Timestamp | undefined): number {
  if (timestamp === undefined || now === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, now.storeMs - timestamp.storeMs, now.monotonicMs - timestamp.monotonicMs);
}
