import { performance } from "node:perf_hooks";

/*
 * How old the newest knowledge of each workspace may be, from the heartbeats that were heard.
 *
 * A heartbeat names a time of the store's clock. That clock may be set back (another machine takes over), and our own
 * monotonic clock stands still while the machine sleeps. So a moment is remembered on both clocks, and counts as old as the
 * one says that makes it older. A heartbeat is taken when it makes us know more than before, on whatever clock: one of an
 * older clock that is ahead does not keep those of the new one from counting.
 *
 * Never: an age that is smaller than it is because a clock went back.
 */

/**
 * The estimate of the store's clock is never behind, so a heartbeat that is ahead of it is of another clock, or made up. As
 * much as this may be ahead: the estimate is measured anew each 10 s, and a clock may have been set meanwhile.
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
}

const NONE: ReadonlyMap<string, number> = new Map();

export class Freshness {
  readonly #storeNowMs: () => number | undefined;
  readonly #monotonicMs: () => number;
  /** What holds for every workspace that is not in `#lagging`. */
  #common: Moment | undefined;
  readonly #lagging = new Map<string, Moment>();
  /** Heard before the store's clock was known. */
  #unjudged: Heartbeat | undefined;

  constructor({ storeNowMs, monotonicMs = () => performance.now() }: FreshnessOptions) {
    this.#storeNowMs = storeNowMs;
    this.#monotonicMs = monotonicMs;
  }

  /** False: it is of the future, and was not taken. Times in `lagging` are not later than `asOfMs`. */
  hear(asOfMs: number, lagging: ReadonlyMap<string, number> = NONE): boolean {
    const now = this.#now();
    this.#unjudged = now === undefined ? { asOfMs, lagging } : undefined;
    if (now === undefined) return true;
    if (asOfMs > now.storeMs + AHEAD_MAX_MS) return false;
    this.#take({ asOfMs, lagging }, now);
    return true;
  }

  /** Without a workspace: of the one of which the knowledge is oldest. */
  stalenessMs(workspaceId?: string): number {
    this.#judge();
    const now = this.#now();
    if (workspaceId !== undefined) return ageMs(this.#lagging.get(workspaceId) ?? this.#common, now);
    let worstMs = ageMs(this.#common, now);
    for (const moment of this.#lagging.values()) worstMs = Math.max(worstMs, ageMs(moment, now));
    return worstMs;
  }

  /** Of every workspace that does not lag behind the others. */
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
