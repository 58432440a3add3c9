import type { EventSource, UsageEvent } from "./contract.ts";

const KEPT_MAX = 100_000;

/** The stream between a sink and an ingester of one process. Capped: the oldest make room, as they do in Redis. */
export class MemoryEventStream implements EventSource {
  readonly #byWorkspace = new Map<string, UsageEvent[]>();
  readonly #keptMax: number;

  constructor(keptMax: number = KEPT_MAX) {
    this.#keptMax = keptMax;
  }

  append(events: readonly UsageEvent[]): void {
    for (const event of events) {
      const kept = this.#byWorkspace.get(event.workspaceId) ?? [];
      this.#byWorkspace.set(event.workspaceId, kept);
      kept.push(event);
      if (kept.length > this.#keptMax) kept.shift();
    }
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
