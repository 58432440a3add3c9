import type { EventBatch } from "./buffer.ts";
import type { EventSource, Portion, StreamDepth, StreamsSeen, TakenEvents } from "./contract.ts";
import { EventLines } from "./schema.ts";

const KEPT_MAX = 100_000;
const PORTION_MAX = 2_000;

/** The stream between a sink and an ingester of one process. Capped: the oldest make room, as they do in Redis. */
export class MemoryEventStream implements EventSource {
  /** By workspace: the lines, and when they came (of `performance.now()`). */
  readonly #kept = new Map<string, { readonly line: string; readonly atMs: number }[]>();
  readonly #keptMax: number;

  constructor(keptMax: number = KEPT_MAX) {
    this.#keptMax = keptMax;
  }

  append({ workspaceId, lines }: EventBatch): void {
    const kept = this.#kept.get(workspaceId) ?? [];
    this.#kept.set(workspaceId, kept);
    const atMs = performance.now();
    for (const line of lines.toString().split("\n")) if (line !== "") kept.push({ line, atMs });
    if (kept.length > this.#keptMax) kept.splice(0, kept.length - this.#keptMax);
  }

  async look(workspaceIds: readonly string[]): Promise<StreamsSeen> {
    const depths: StreamDepth[] = [];
    for (const workspaceId of workspaceIds) {
      const kept = this.#kept.get(workspaceId);
      if (kept === undefined || kept.length === 0) continue;
      const bytes = kept.reduce((sum, { line }) => sum + line.length, 0);
      depths.push({ workspaceId, entries: kept.length, bytes, ageMs: performance.now() - (kept[0]?.atMs ?? 0) });
    }
    return { depths, setAside: [], failed: [] };
  }

  async take(workspaceId: string, handle: (events: TakenEvents) => Promise<void>): Promise<Portion> {
    const taken = this.#kept.get(workspaceId)?.splice(0, PORTION_MAX) ?? [];
    if (taken.length === 0) return { entries: 0, unreadable: 0 };
    try {
      await handle(new EventLines(workspaceId, taken.map(({ line }) => line).join("\n")));
    } catch (error) {
      this.#kept.set(workspaceId, [...taken, ...(this.#kept.get(workspaceId) ?? [])]);
      throw error;
    }
    return { entries: taken.length, unreadable: 0 };
  }

  async close(): Promise<void> {}
}
