/*
 * Tracks the time up to which each workspace's changes have been delivered.
 *
 * A scan is a time of the Redis clock and the number of the newest outbox entry that was visible just after it. Everything committed before
 * that time has an entry with this number or a lower one. So if a workspace's oldest pending entry has a higher number, or it has no
 * pending entry, everything from before that time has been delivered for it.
 *
 * A workspace with a million entries lags until they are relayed; other workspaces do not.
 */

export interface Scan {
  /** Time on the Redis clock, ms, read before the newest entry was looked up. */
  readonly asOfMs: number;
  /** Sequence number of the newest visible outbox entry. */
  readonly newest: number;
}

/**
 * Times up to which changes have been delivered. `asOfMs` applies to all workspaces except those in `lagging`, which have earlier times (0:
 * unknown).
 */
export interface DeliveredUntil {
  readonly asOfMs: number;
  readonly lagging: ReadonlyMap<string, number>;
}

/** Maximum number of stored scans. If a relay is so far behind that it would need more, it reports times that are slightly too early. */
const SCANS_MAX = 64;

export class Watermark {
  readonly #scans: Scan[] = [];
  /** Times reported for lagging workspaces, which never decrease. */
  #lagging: ReadonlyMap<string, number> = new Map();
  #asOfMs = 0;

  /** Records a scan. Must be called for each scan, before entries are relayed. */
  scanned(scan: Scan): void {
    this.#scans.push(scan);
    // Removes the second-newest scan, because it is the least useful: the newest is always required, and lagging workspaces reach the
    // oldest ones next.
    if (this.#scans.length > SCANS_MAX) this.#scans.splice(-2, 1);
  }

  /**
   * Returns the delivered times; `undefined` before the first scan. `oldest` maps each workspace with pending entries to the sequence
   * number of its oldest entry.
   */
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
    // Of the scans that every workspace has reached, keeps only the newest.
    while (this.#scans.length > 1 && (this.#scans[1]?.newest ?? 0) < oldestOfAll) this.#scans.shift();
    return { asOfMs: this.#asOfMs, lagging };
  }
}
