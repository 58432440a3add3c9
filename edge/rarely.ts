/** What fails with every request of an outage, or of an attack, would bury all other lines of a log. */
const EVERY_MS = 5_000;

interface Noted {
  /** Since it was last due. */
  count: number;
  /** `performance.now()`. */
  dueAtMs: number;
}

/** Says for each kind of event when a line about it is due: at the first, and then at most once in five seconds. */
export class Rarely {
  readonly #noted = new Map<string, Noted>();

  /** Counts one event. Returns how many there were since the last line when a line is due now, else undefined. */
  note(kind: string): number | undefined {
    let noted = this.#noted.get(kind);
    if (noted === undefined) {
      noted = { count: 0, dueAtMs: Number.NEGATIVE_INFINITY };
      this.#noted.set(kind, noted);
    }
    noted.count += 1;
    const nowMs = performance.now();
    if (nowMs < noted.dueAtMs) return undefined;
    const { count } = noted;
    noted.count = 0;
    noted.dueAtMs = nowMs + EVERY_MS;
    return count;
  }
}
