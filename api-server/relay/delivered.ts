/*
 * Up to which time each workspace's changes have been delivered.
 *
 * A scan is a moment of the shared store's clock and the number of the newest mark that was visible just after it. Everything
 * committed before that moment has a mark with this number or a lower one. So if a workspace's oldest waiting mark has a higher
 * number, or it has none waiting, everything from before that moment has been delivered for it.
 *
 * A workspace with a million marks lags until they are relayed; the others do not.
 */

export interface Scan {
  /** Clock of the shared store, ms, read before the newest mark was searched. */
  readonly asOfMs: number;
  /** Number of the newest visible mark. */
  readonly newest: number;
}

/** `asOfMs` applies to all workspaces but those in `lagging`, which have an earlier time (0: unknown). */
export interface DeliveredUntil {
  readonly asOfMs: number;
  readonly lagging: ReadonlyMap<string, number>;
}

/** A relay that is more scans behind reports times that are a little too early. */
const SCANS_MAX = 64;

export class Delivered {
  readonly #scans: Scan[] = [];
  /** The times reported for lagging workspaces, which never go back. */
  #lagging: ReadonlyMap<string, number> = new Map();
  #asOfMs = 0;

  /** Call it with each scan, before marks are relayed. */
  scanned(scan: Scan): void {
    this.#scans.push(scan);
    // The newest one is needed, and lagging workspaces reach the oldest ones next.
    if (this.#scans.length > SCANS_MAX) this.#scans.splice(-2, 1);
  }

  /** `oldest` maps each workspace with waiting marks to the number of the oldest. Returns undefined before the first scan. */
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
    // Of the scans that all workspaces have reached, only the newest is needed.
    while (this.#scans.length > 1 && (this.#scans[1]?.newest ?? 0) < oldestOfAll) this.#scans.shift();
    return { asOfMs: this.#asOfMs, lagging };
  }
}
