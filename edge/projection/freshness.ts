import { performance } from "node:perf_hooks";

/*
 * How stale the data of each workspace may be, computed from the heartbeats that arrived.
 *
 * A heartbeat names a time of the store's clock. That clock may be set back (another machine takes over), and our own
 * monotonic clock stands still while the machine sleeps. So each moment is remembered on both clocks, and its age is the larger of the
 * two. A heartbeat is accepted when it proves more than was known before, on either clock: a heartbeat of an older clock that is ahead
 * does not prevent those of the new clock from counting.
 *
 * Invariant: an age is never too small because a clock went back.
 */

/**
 * The estimate of the store's clock is never behind, so a heartbeat that is ahead of it comes from another clock or is forged. It may
 * be ahead by this much: the estimate is measured again every 10 s, and the clock may have been set since.
 */
export const AHEAD_MAX_MS = 5_000;

/** One moment on both clocks. */
interface Moment {
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
  /** How stale what an earlier process knew is by now; it counts until the first heartbeat. */
  readonly restoredMs?: (() => number) | undefined;
}

const NONE: ReadonlyMap<string, number> = new Map();

export class Freshness {
  readonly #storeNowMs: () => number | undefined;
  readonly #monotonicMs: () => number;
  readonly #restoredMs: (() => number) | undefined;
  /** Applies to every workspace that is not in `#lagging`. */
  #common: Moment | undefined;
  readonly #lagging = new Map<string, Moment>();
  /** Arrived before the store's clock was known. */
  #unjudged: Heartbeat | undefined;

  constructor({ storeNowMs, monotonicMs = () => performance.now(), restoredMs }: FreshnessOptions) {
    this.#storeNowMs = storeNowMs;
    this.#monotonicMs = monotonicMs;
    this.#restoredMs = restoredMs;
  }

  /** Whether all that is known is of an earlier process. */
  get isRestored(): boolean {
    this.#judge();
    return this.#restoredMs !== undefined && this.#common === undefined;
  }

  /** Returns false for a heartbeat from the future, which is ignored. Times in `lagging` are not later than `asOfMs`. */
  hear(asOfMs: number, lagging: ReadonlyMap<string, number> = NONE): boolean {
    const now = this.#now();
    this.#unjudged = now === undefined ? { asOfMs, lagging } : undefined;
    if (now === undefined) return true;
    if (asOfMs > now.storeMs + AHEAD_MAX_MS) return false;
    this.#take({ asOfMs, lagging }, now);
    return true;
  }

  /** Without a workspace: the maximum over all. */
  stalenessMs(workspaceId?: string): number {
    this.#judge();
    if (this.#common === undefined && this.#restoredMs !== undefined) return this.#restoredMs();
    const now = this.#now();
    if (workspaceId !== undefined) return ageMs(this.#lagging.get(workspaceId) ?? this.#common, now);
    let worstMs = ageMs(this.#common, now);
    for (const moment of this.#lagging.values()) worstMs = Math.max(worstMs, ageMs(moment, now));
    return worstMs;
  }

  /** The staleness of the workspaces that do not lag behind the others. */
  ofFeed(): { ms: number; laggingWorkspaces: number } {
    this.#judge();
    return { ms: ageMs(this.#common, this.#now()), laggingWorkspaces: this.#lagging.size };
  }

  #now(): Moment | undefined {
    const storeMs = this.#storeNowMs();
    return storeMs === undefined ? undefined : { storeMs, monotonicMs: this.#monotonicMs() };
  }

  #judge(): void {
    if (this.#unjudged !== undefined) this.hear(this.#unjudged.asOfMs, this.#unjudged.lagging);
  }

  #take({ asOfMs, lagging }: Heartbeat, now: Moment): void {
    const told = (storeMs: number): Moment => ({
      storeMs,
      monotonicMs: now.monotonicMs - Math.max(0, now.storeMs - storeMs),
    });
    const newer = (known: Moment | undefined, other: Moment): Moment =>
      known !== undefined && ageMs(known, now) <= ageMs(other, now) ? known : other;

    const before = this.#common;
    const common = newer(before, told(asOfMs));
    for (const workspaceId of new Set([...this.#lagging.keys(), ...lagging.keys()])) {
      const known = this.#lagging.get(workspaceId) ?? before;
      const moment = newer(known, told(lagging.get(workspaceId) ?? asOfMs));
      if (ageMs(moment, now) > ageMs(common, now)) this.#lagging.set(workspaceId, moment);
      else this.#lagging.delete(workspaceId);
    }
    this.#common = common;
  }
}

function ageMs(moment: Moment | undefined, now: Moment | undefined): number {
  if (moment === undefined || now === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, now.storeMs - moment.storeMs, now.monotonicMs - moment.monotonicMs);
}
