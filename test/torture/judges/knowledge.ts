import type { SampleEntry } from "../journal.ts";

/** What one life of a process said of its knowledge: in the order of time, the instant up to which it knows only grows. */
interface Life {
  readonly answeredMs: number[];
  readonly upToMs: number[];
}

/** Clocks: a process estimates that of Redis, from a question whose way back takes a moment. */
const MARGIN_MS = 300;

/** Up to which instant each process said that it knows everything. */
export class Knowledge {
  readonly #lives = new Map<string, Life>();

  constructor(samples: readonly SampleEntry[]) {
    for (const { process, incarnation, sentMs, answeredMs, stalenessMs } of samples) {
      if (stalenessMs === undefined) continue;
      const life = this.#life(process, incarnation);
      const upToMs = sentMs - stalenessMs - MARGIN_MS;
      life.answeredMs.push(answeredMs);
      life.upToMs.push(Math.max(upToMs, life.upToMs.at(-1) ?? Number.NEGATIVE_INFINITY));
    }
  }

  /** What the process had said before this instant; -Infinity when it had said nothing. */
  upToMs(of: { process: string; incarnation: number; beforeMs: number }): number {
    const { answeredMs, upToMs } = this.#life(of.process, of.incarnation);
    let [low, high] = [0, answeredMs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((answeredMs[middle] as number) <= of.beforeMs) low = middle + 1;
      else high = middle;
    }
    return upToMs[low - 1] ?? Number.NEGATIVE_INFINITY;
  }

  #life(process: string, incarnation: number): Life {
    const name = `${process} ${incarnation}`;
    let life = this.#lives.get(name);
    if (life === undefined) {
      life = { answeredMs: [], upToMs: [] };
      this.#lives.set(name, life);
    }
    return life;
  }
}
