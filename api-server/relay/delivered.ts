/*
 * Until when each workspace's changes have been delivered.
 *
 * A scan is a moment of the shared store's clock and the number of the newest mark that was visible just after it. Whatever was
 * committed before that moment has a mark with this number or a lower one. So a workspace whose oldest waiting mark has a higher
 * number, or which has none waiting, has been delivered everything from before that moment.
 *
 * One workspace with a million marks is behind for as long as they take; all others are not.
 */

export interface Scan {
  /** Clock of the shared store, ms, read before the newest mark was looked for. */
  readonly asOfMs: number;
  /** Number of the newest visible mark. */
  readonly newest: number;
}

/** Delivered until when: `asOfMs` for all workspaces but those in `lagging`, which has an earlier time (0: not known). */
export interface DeliveredUntil {
  readonly asOfMs: number;
  readonly lagging: ReadonlyMap<string, number>;
}

/** A relay that is behind by more scans than this says a little less than it could. */
const SCANS_MAX = 64;

export class Delivered {
  readonly #scans: Scan[] = [];
  /** What was said of those that are behind, which is never taken back. */
  #lagging: ReadonlyMap<string, number> = new Map();
  #asOfMs = 0;

  /** To be called with each scan, before marks are carried. */
  scanned(scan: Scan): void {
    this.#scans.push(scan);
    // The newest one is needed, and the oldest ones are what those far behind reach next.
    if (this.#scans.length > SCANS_MAX) this.#scans.splice(-2, 1);
  }

  /** `oldest` has the number of the oldest waiting mark of each workspace that has any. undefined before the first scan. */
  until(oldest: ReadonlyMap<string, number>): DeliveredUntil | undefined {
    const newestScan = this.#scans.at(-1);
    if (newestScan === undefined) return undefined;
    const lagging = new Map<string, number>();
    for (const [workspaceId, seq] of oldest) {
      if (seq > newestScan.newest) continue;
      const reached = this.#scans.findLast((scan) => seq > scan.newest)?.asOfMs ?? 0;
      const before = this.#lagging.get(workspaceId) ?? this.#asOfMs;
      lagging.set(workspaceId, Math.max(reached, before));
    }
    this.#lagging = lagging;
    this.#asOfMs = newestScan.asOfMs;
    const oldestOfAll = oldest.values().reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
    // Scans that everything has reached say nothing more than the newest one of them.
    while (this.#scans.length > 1 && (this.#scans[1]?.newest ?? 0) < oldestOfAll) this.#scans.shift();
    return { asOfMs: this.#asOfMs, lagging };
  }
}
