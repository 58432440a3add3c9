/**
 * A map of at most `max` entries. When it is full, it evicts the oldest entry that was not read since the last eviction skipped it
 * (second chance). So reading an entry only sets a flag and does not reorder the map.
 */
export class BoundedCache<K, V> {
  readonly #entries = new Map<K, { value: V; used: boolean }>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = Math.max(1, max);
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    entry.used = true;
    return entry.value;
  }

  /** Returns the evicted value, if one was evicted. */
  set(key: K, value: V): V | undefined {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.value = value;
      return undefined;
    }
    const evicted = this.#entries.size >= this.#max ? this.#evict() : undefined;
    this.#entries.set(key, { value, used: false });
    return evicted;
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  /** In no particular order, and without marking them as read. */
  *values(): Iterable<V> {
    for (const { value } of this.#entries.values()) yield value;
  }

  clear(): void {
    this.#entries.clear();
  }

  #evict(): V | undefined {
    // Each skipped entry loses its flag, so the second pass finds one at the latest.
    for (const [key, entry] of this.#entries) {
      this.#entries.delete(key);
      if (!entry.used) return entry.value;
      entry.used = false;
      this.#entries.set(key, entry);
    }
    return undefined;
  }
}
