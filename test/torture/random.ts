import { createHash } from "node:crypto";

/** Random numbers from a seed. `fork` makes a generator that does not depend on how often others are used. */
export class Random {
  readonly #seed: string;
  #state: number;

  constructor(seed: string) {
    this.#seed = seed;
    this.#state = createHash("sha256").update(seed).digest().readUInt32BE(0);
  }

  fork(name: string): Random {
    return new Random(`${this.#seed}/${name}`);
  }

  /** At least 0, below 1. (Mulberry32: small, and even enough for choosing faults.) */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Throws for an empty list. */
  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error("nothing to pick from");
    return list[this.whole(0, list.length - 1)] as T;
  }

  shuffled<T>(list: readonly T[]): T[] {
    const result = [...list];
    for (let last = result.length - 1; last > 0; last--) {
      const other = this.whole(0, last);
      [result[last], result[other]] = [result[other] as T, result[last] as T];
    }
    return result;
  }

  /** A pause with the mean `meanMs`, never longer than four times that. */
  pauseMs(meanMs: number): number {
    return Math.min(-Math.log(1 - this.next()) * meanMs, 4 * meanMs);
  }
}
