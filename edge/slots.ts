/*
 * Items in flight, in slots that are reused. A Set would work too, but costs much more: each time it allocates a new table, the
 * old one still references its items until the next full garbage collection, so that most requests of a busy process would
 * survive the young collections.
 */

/** An item for `Slots`; it remembers its slot. */
export interface Slotted {
  /** −1 when it is in none. */
  slot: number;
}

export class Slots<T extends Slotted> {
  readonly #places: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#places.length - this.#free.length;
  }

  /** The item must not be in a slot already. */
  add(item: T): void {
    const slot = this.#free.pop() ?? this.#places.length;
    item.slot = slot;
    this.#places[slot] = item;
  }

  /** Returns false when it was not in a slot. */
  remove(item: T): boolean {
    const { slot } = item;
    if (slot === -1) return false;
    item.slot = -1;
    this.#places[slot] = undefined;
    this.#free.push(slot);
    return true;
  }

  /** In no particular order. Items may be removed during the iteration. */
  *[Symbol.iterator](): Iterator<T> {
    for (const item of this.#places) if (item !== undefined) yield item;
  }
}
