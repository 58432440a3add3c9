/*
 * What this process has seen of each feed: which projection, and how many entries of it. Followers tell of every entry, and
 * each read of records of the mark that it was read with.
 *
 *   new ──► trusted ──► (a lower head than was known, or an earlier projection in place of a later one) ──► distrusted
 *
 * A store that went back in time has lost entries together with the records that they announced. When later entries bring
 * its head past the one that was known, those records are still as they were in the snapshot, so distrust of a projection
 * never ends: it is over when another projection begins, in which every record is written anew. The relay begins one as soon
 * as it sees the head of any workspace move back.
 *
 * A question is judged by what was known when it was sent: while it is on its way, an entry may arrive on another
 * connection that the answer could not know of.
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

/** So many projections of a feed are remembered. Each begins when the store was lost, so this is more than a day's worth. */
const PROJECTIONS_MAX = 8;

export class KnownHeads {
  /** The latest last. */
  readonly #seen = new Map<string, Seen[]>();

  /** What is known of a feed, to be taken when the store is asked. */
  known(feed: string): Sighting | undefined {
    const latest = this.#seen.get(feed)?.at(-1);
    return latest && { projectionId: latest.projectionId, head: latest.head };
  }

  isDistrusted(feed: string, projectionId: string): boolean {
    return this.#find(feed, projectionId)?.isDistrusted === true;
  }

  /** An entry was delivered. It may be of an earlier projection than others have seen, because a follower is behind. */
  hear(feed: string, { projectionId, head }: Sighting): void {
    const seen = this.#findOrAdd(feed, projectionId);
    seen.head = Math.max(seen.head, head);
  }

  /**
   * Takes what the store said of its state, in answer to a question that was sent when `before` was known. False: the store
   * has gone back in time since, now or when it was asked before, and what it holds of this projection is not usable.
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
