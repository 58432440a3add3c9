/*
 * Items in flight, in reusable slots. A Set costs much more: after it has allocated a new table, the old one references its items until the
 * next full garbage collection. In a busy process, most finished requests would thus survive the young collections.
 */

/** An item that stores its slot number for `Slots`. */
export interface Slotted {
  /** Slot number; −1 if the item is in no slot. */
  slot: number;
}

export class Slots<T extends Slotted> {
  readonly #items: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#items.length - this.#free.length;
  }

  /** Adds an item, which must not be in a slot already. */
  add(item: T): void {
    const slot = this.#free.pop() ?? this.#items.length;
    item.slot = slot;
    this.#items[slot] = item;
  }

  /** Removes an item. Returns false if the item was in no slot. */
  remove(item: T): boolean {
    const { slot } = item;
    if (slot === -1) return false;
    item.slot = -1;
    this.#items[slot] = undefined;
    this.#free.push(slot);
    return true;
  }

  /** Iterates over the items, unordered. Items may be removed during the iteration. */
  *[Symbol.iterator](): Iterator<T> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}
