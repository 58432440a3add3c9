/** A small seeded random generator (mulberry32): the same seed makes the same cases on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 to `below` - 1. */
  int(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  }

  /** True once in `times`. */
  oneIn(times: number): boolean {
    return this.int(times) === 0;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.int(items.length)] as T;
  }

  /** Any of the items, each with the given chance. */
  some<T>(items: readonly T[], chanceOneIn: number): T[] {
    return items.filter(() => this.oneIn(chanceOneIn));
  }

  /** Letters for a body, without line ends, so that no part of it looks like a head. */
  letters(length: number): string {
    let text = "";
    while (text.length < length) text += this.int(2 ** 31).toString(36);
    return text.slice(0, length);
  }
}
