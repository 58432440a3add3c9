/**
 * A map of at most `max` entries with a total weight of at most `weightMax`. An entry that is heavier than `weightMax` is kept as the only
 * entry. A full cache evicts by second chance: the oldest entry that has not been read since an eviction last skipped it. Reading an entry
 * thus only sets a flag and does not reorder the map.
 */
export class BoundedCache<K, V> {
  readonly #entries = new Map<K, { value: V; used: boolean; weight: number }>();
  readonly #max: number;
  readonly #weightMax: number;
  #weight = 0;

  constructor(max: number, weightMax = Number.POSITIVE_INFINITY) {
    this.#max = Math.max(1, max);
    this.#weightMax = weightMax;
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

  /** Sets an entry and returns the evicted values. An existing entry keeps its position; its new weight may cause others to be evicted. */
  set(key: K, value: V, weight = 0): readonly V[] {
    let evicted: readonly V[] = NONE;
    const known = this.#entries.get(key);
    if (known === undefined) {
      evicted = this.#evictFor({ entries: this.#max - 1, weight: this.#weightMax - weight, least: 0 });
      this.#entries.set(key, { value, used: false, weight });
      this.#weight += weight;
    } else {
      this.#weight += weight - known.weight;
      known.value = value;
      known.weight = weight;
      if (this.#weight > this.#weightMax) {
        known.used = true;
        evicted = this.#evictFor({ entries: this.#max, weight: this.#weightMax, least: 1 });
      }
    }
    return evicted;
  }

  delete(key: K): boolean {
    this.#weight -= this.#entries.get(key)?.weight ?? 0;
    return this.#entries.delete(key);
  }

  /** Returns all values, unordered. They do not count as read. */
  *values(): Iterable<V> {
    for (const { value } of this.#entries.values()) yield value;
  }

  /** Returns a copy of all entries, unordered. They do not count as read. */
  list(): [key: K, value: V][] {
    return Array.from(this.#entries, ([key, { value }]) => [key, value]);
  }

  clear(): void {
    this.#entries.clear();
    this.#weight = 0;
  }

  /**
   * Evicts entries until at most `entries` entries with a total weight of at most `weight` remain. Keeps at least `least` entries, whatever
   * their weight.
   */
  #evictFor({ entries, weight, least }: { entries: number; weight: number; least: number }): readonly V[] {
    let evicted: V[] | undefined;
    while (this.#entries.size > entries || (this.#entries.size > least && this.#weight > weight)) {
      evicted ??= [];
      evicted.push(this.#evict());
    }
    return evicted ?? NONE;
  }

  /** Evicts one entry. The cache must not be empty. */
  #evict(): V {
    // Each skipped entry loses its flag, so the second pass finds an entry without a flag.
    for (const [key, entry] of this.#entries) {
      this.#entries.delete(key);
      if (!entry.used) {
        this.#weight -= entry.weight;
        return entry.value;
      }
      entry.used = false;
      this.#entries.set(key, entry);
    }
    throw new Error("evicting from an empty cache");
  }
}

const NONE: readonly never[] = [];
