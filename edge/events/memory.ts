import type { EventBatch } from "./buffer.ts";
import type { EventSource, TakenEvents } from "./contract.ts";
import { EventLines } from "./schema.ts";

const KEPT_MAX = 100_000;

/** The stream between a sink and an ingester of one process. Capped: the oldest make room, as they do in Redis. */
export class MemoryEventStream implements EventSource {
  /** By workspace: the lines. */
  readonly #kept = new Map<string, string[]>();
  readonly #keptMax: number;

  constructor(keptMax: number = KEPT_MAX) {
    this.#keptMax = keptMax;
  }

  append({ workspaceId, lines }: EventBatch): void {
    const kept = this.#kept.get(workspaceId) ?? [];
    this.#kept.set(workspaceId, kept);
    for (const line of lines.toString().split("\n")) if (line !== "") kept.push(line);
    if (kept.length > this.#keptMax) kept.splice(0, kept.length - this.#keptMax);
  }

  async take(
    workspaceIds: readonly string[],
    max: number,
    handle: (events: TakenEvents) => Promise<void>,
  ): Promise<number> {
    let count = 0;
    for (const workspaceId of workspaceIds) {
      const taken = this.#kept.get(workspaceId)?.splice(0, max - count) ?? [];
      if (taken.length === 0) continue;
      try {
        await handle(new EventLines(workspaceId, taken.join("\n")));
      } catch (error) {
        // Unlike a dead reader's, they are taken up again at once: nobody else could be reading them still.
        this.#kept.set(workspaceId, [...taken, ...(this.#kept.get(workspaceId) ?? [])]);
        throw error;
      }
      count += taken.length;
    }
    return count;
  }
}
