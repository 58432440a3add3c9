import type { Random } from "../random.ts";
import type { Part } from "../world/part.ts";
import type { Result } from "./http.ts";

/** How long a server that did not answer is avoided while there are others. */
const AVOID_MS = 4_000;

/** Chooses among equivalent processes as a load balancer does: at random, but not those that failed recently. */
export class Servers {
  readonly #parts: readonly Part[];
  readonly #failedMs = new Map<Part, number>();

  constructor(parts: readonly Part[]) {
    this.#parts = parts;
  }

  pick(random: Random): Part {
    const since = performance.now() - AVOID_MS;
    const good = this.#parts.filter((part) => (this.#failedMs.get(part) ?? Number.NEGATIVE_INFINITY) < since);
    return random.pick(good.length > 0 ? good : this.#parts);
  }

  note(part: Part, { kind }: Pick<Result, "kind">): void {
    if (kind === "answered") this.#failedMs.delete(part);
    else this.#failedMs.set(part, performance.now());
  }
}
