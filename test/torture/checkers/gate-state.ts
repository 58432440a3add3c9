import type { SampleEntry } from "../journal.ts";

/** The reports of one life of a process: in order of time, the instant up to which it knows everything only increases. */
interface Life {
  readonly answeredMs: number[];
  readonly upToMs: number[];
}

/** A tolerance for clocks: a process estimates the clock of Redis from a round trip. */
const MARGIN_MS = 300;

/** The instant up to which each process reported to know everything. */
export class GateState {
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

  /** What the process had reported before this instant; -Infinity when nothing. */
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
