/*
 * What this process has seen of each feed: the projection, and the number of its entries (the head). Followers report every entry,
 * and each read of records reports the mark that it was read with.
 *
 *   new ──► trusted ──► (a lower head than was known, or an earlier projection in place of a later one) ──► distrusted
 *
 * A store that went back in time has lost entries together with the records that they announced. Later entries can raise its head
 * above the known one, but the lost records are still as in the snapshot. So distrust of a projection never ends; it is over when
 * another projection begins, in which every record is written again. The relay begins one as soon as it sees the head of any
 * workspace go back.
 *
 * A reply is judged by what was known when its request was sent: while it is in flight, an entry may arrive on another connection
 * that the reply could not include.
 */

export interface Sighting {
  readonly projectionId: string;
  /** Entries of the feed so far. */
  readonly head: number;
}

interface Seen {
  readonly projectionId: string;
  head: number;
  isDistrusted: boolean;
}

/** How many projections of a feed are remembered. A new one begins when the store was lost, so 8 cover more than a day. */
const PROJECTIONS_MAX = 8;

export class KnownHeads {
  /** The latest last. */
  readonly #seen = new Map<string, Seen[]>();

  /** Returns what is known of a feed; take it when a request is sent. */
  known(feed: string): Sighting | undefined {
    const latest = this.#seen.get(feed)?.at(-1);
    return latest && { projectionId: latest.projectionId, head: latest.head };
  }

  isDistrusted(feed: string, projectionId: string): boolean {
    return this.#find(feed, projectionId)?.isDistrusted === true;
  }

  /** An entry was delivered. A follower that is behind may deliver one of an earlier projection. */
  hear(feed: string, { projectionId, head }: Sighting): void {
    const seen = this.#findOrAdd(feed, projectionId);
    seen.head = Math.max(seen.head, head);
  }

  /**
   * Records the store's reply about its state, to a request that was sent when `before` was known. Returns false if the store
   * has gone back in time, now or at an earlier reply; then what it holds of this projection is not usable.
   */
  judge(feed: string, { projectionId, head }: Sighting, before: Sighting | undefined): boolean {
    const seen = this.#findOrAdd(feed, projectionId);
    const wentBack =
      before !== undefined &&
      (before.projectionId === projectionId ? head < before.head : this.#isEarlier(feed, projectionId, before));
    if (wentBack) seen.isDistrusted = true;
    else seen.head = Math.max(seen.head, head);
    return !seen.isDistrusted;
  }

  distrust(feed: string, projectionId: string): void {
    this.#findOrAdd(feed, projectionId).isDistrusted = true;
  }

  #isEarlier(feed: string, projectionId: string, than: Sighting): boolean {
    const order = (this.#seen.get(feed) ?? []).map((seen) => seen.projectionId);
    return order.indexOf(projectionId) < order.indexOf(than.projectionId);
  }

  #find(feed: string, projectionId: string): Seen | undefined {
    return this.#seen.get(feed)?.find((seen) => seen.projectionId === projectionId);
  }

  #findOrAdd(feed: string, projectionId: string): Seen {
    const known = this.#find(feed, projectionId);
    if (known !== undefined) return known;
    const seen: Seen = { projectionId, head: 0, isDistrusted: false };
    const all = this.#seen.get(feed) ?? [];
    this.#seen.set(feed, [...all, seen].slice(-PROJECTIONS_MAX));
    return seen;
  }
}
