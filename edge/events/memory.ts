import type { EventBatch } from "./buffer.ts";
import type { EventSource, UsageEvent } from "./contract.ts";
import { readEvent } from "./schema.ts";

const KEPT_MAX = 100_000;

/** The stream between a sink and an ingester of one process. Capped: the oldest make room, as they do in Redis. */
export class MemoryEventStream implements EventSource {
  readonly #byWorkspace = new Map<string, UsageEvent[]>();
  readonly #keptMax: number;

  constructor(keptMax: number = KEPT_MAX) {
    this.#keptMax = keptMax;
  }

  append({ workspaceId, lines }: EventBatch): void {
    const kept = this.#byWorkspace.get(workspaceId) ?? [];
    this.#byWorkspace.set(workspaceId, kept);
    for (const line of lines.toString().split("\n")) {
      const event = readEvent(line, workspaceId);
      if (event !== undefined) kept.push(event);
    }
    if (kept.length > this.#keptMax) kept.splice(0, kept.length - this.#keptMax);
  }

  async take(
    workspaceIds: readonly string[],
    max: number,
    handle: (events: readonly UsageEvent[]) => Promise<void>,
  ): Promise<number> {
    const taken: UsageEvent[] = [];
    for (const workspaceId of workspaceIds) {
      taken.push(...(this.#byWorkspace.get(workspaceId)?.splice(0, max - taken.length) ?? []));
    }
    if (taken.length === 0) return 0;
    try {
      await handle(taken);
    } catch (error) {
      // Unlike a dead reader's, they are taken up again at once: nobody else could be reading them still.
      for (const event of taken.reverse()) this.#byWorkspace.get(event.workspaceId)?.unshift(event);
      throw error;
    }
    return taken.length;
  }
}
