/*
 * Detects that the store was rolled back. For this, it records the projection and the number of entries (the head) of each change stream:
 * followers report every entry, and each read of records reports the projection state that it was read with.
 *
 *   new ──► trusted ──► (a head lower than a known one, or an earlier projection after a later one) ──► rolled back
 *
 * A rolled-back store has lost entries together with the records that they announced. Later entries may raise its head above the known one,
 * but the lost records stay old. So a projection stays rolled back until another projection begins, in which the relay writes every record
 * again. The relay begins a new projection when it detects that the head of any workspace has gone back.
 *
 * A reply is compared with the state known when its request was sent: while it is in flight, an entry that the reply could not
 * include may arrive on another connection.
 */

export interface Sighting {
  readonly projectionId: string;
  /** Number of entries in the stream. */
  readonly head: number;
}

interface Seen {
  readonly projectionId: string;
  head: number;
  isRolledBack: boolean;
}

/**
 * Maximum number of remembered projections per stream. A new projection begins only after the store was lost, so eight projections usually
 * span more than a day.
 */
const PROJECTIONS_MAX = 8;

export class RollbackDetector {
  /** Known states of each stream, oldest first. */
  readonly #seen = new Map<string, Seen[]>();

  /** Returns the known state of a stream. Must be called before the request is sent. */
  known(stream: string): Sighting | undefined {
    const latest = this.#seen.get(stream)?.at(-1);
    return latest && { projectionId: latest.projectionId, head: latest.head };
  }

  isRolledBack(stream: string, projectionId: string): boolean {
    return this.#find(stream, projectionId)?.isRolledBack === true;
  }

  /** Records a delivered entry. A follower that lags may deliver an entry of an earlier projection. */
  observe(stream: string, { projectionId, head }: Sighting): void {
    const seen = this.#findOrAdd(stream, projectionId);
    seen.head = Math.max(seen.head, head);
  }

  /**
   * Records the store's reply about its state. `before` is the state that was known when the request was sent. Returns false if this reply
   * or an earlier one shows that the store was rolled back; its data of this projection is then unusable.
   */
  evaluate(stream: string, { projectionId, head }: Sighting, before: Sighting | undefined): boolean {
    const seen = this.#findOrAdd(stream, projectionId);
    const wentBack =
      before !== undefined &&
      (before.projectionId === projectionId ? head < before.head : this.#isEarlier(stream, projectionId, before));
    if (wentBack) seen.isRolledBack = true;
    else seen.head = Math.max(seen.head, head);
    return !seen.isRolledBack;
  }

  markRolledBack(stream: string, projectionId: string): void {
    this.#findOrAdd(stream, projectionId).isRolledBack = true;
  }

  #isEarlier(stream: string, projectionId: string, than: Sighting): boolean {
    const order = (this.#seen.get(stream) ?? []).map((seen) => seen.projectionId);
    return order.indexOf(projectionId) < order.indexOf(than.projectionId);
  }

  #find(stream: string, projectionId: string): Seen | undefined {
    return this.#seen.get(stream)?.find((seen) => seen.projectionId === projectionId);
  }

  #findOrAdd(stream: string, projectionId: string): Seen {
    const known = this.#find(stream, projectionId);
    if (known !== undefined) return known;
    const seen: Seen = { projectionId, head: 0, isRolledBack: false };
    const all = this.#seen.get(stream) ?? [];
    this.#seen.set(stream, [...all, seen].slice(-PROJECTIONS_MAX));
    return seen;
  }
}
