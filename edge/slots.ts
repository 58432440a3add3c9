/*
 * What is under way now, in places that are used again and again. A Set would do the same and cost much more: each time it
 * makes itself a new table, the old one goes on holding what was in it until the next big garbage collection, and so most
 * requests of a busy process would outlive the collections that are made for the short-lived.
 */

/** Something that may lie in `Slots`; it remembers where. */
export interface Slotted {
  /** −1 when it lies in none. */
  slot: number;
}

export class Slots<T extends Slotted> {
  readonly #places: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#places.length - this.#free.length;
  }

  /** Must not lie in any already. */
  add(item: T): void {
    const slot = this.#free.pop() ?? this.#places.length;
    item.slot = slot;
    this.#places[slot] = item;
  }

  /** False when it is not there any more. */
  remove(item: T): boolean {
    const { slot } = item;
    if (slot === -1) return false;
    item.slot = -1;
    this.#places[slot] = undefined;
    this.#free.push(slot);
    return true;
  }

  /** In no particular order. Items may be removed meanwhile. */
  *[Symbol.iterator](): Iterator<T> {
    for (const item of this.#places) if (item !== undefined) yield item;
  }
}
