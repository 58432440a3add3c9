import type { EventBatch, Sent } from "./buffer.ts";
import type { EventSource, KeptBudget, Portion, StreamDepth, StreamsSeen, TakenEvents } from "./contract.ts";
import { EventLines } from "./schema.ts";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const PORTION_MAX = 2_000;

interface Line {
  readonly line: string;
  /** By `performance.now()`. */
  readonly atMs: number;
}

/** The stream between the sink and the ingester of one process. Refuses events beyond a workspace's part. */
export class MemoryEventStream implements EventSource {
  readonly #kept = new Map<string, Line[]>();
  #bytesMax = KEPT_BYTES_MAX;

  append({ workspaceId, lines }: EventBatch): Sent {
    const kept = this.#kept.get(workspaceId) ?? [];
    this.#kept.set(workspaceId, kept);
    // Half of the total is reserved in equal parts, one per workspace; the other half goes to workspaces that need more.
    const wanted = bytesOf(kept) + lines.length;
    const own = this.#bytesMax / 2 / this.#kept.size;
    const total = [...this.#kept.values()].reduce((sum, each) => sum + bytesOf(each), lines.length);
    if (wanted > own && total > this.#bytesMax / 2) return "refused";
    const atMs = performance.now();
    for (const line of lines.toString().split("\n")) if (line !== "") kept.push({ line, atMs });
    return "stored";
  }

  async keepWithin(_: readonly string[], bytesMax: number): Promise<KeptBudget> {
    this.#bytesMax = Math.min(bytesMax, KEPT_BYTES_MAX);
    return { totalBytes: this.#bytesMax, trimmed: 0 };
  }

  async look(workspaceIds: readonly string[]): Promise<StreamsSeen> {
    const depths: StreamDepth[] = [];
    for (const workspaceId of workspaceIds) {
      const kept = this.#kept.get(workspaceId);
      if (kept === undefined || kept.length === 0) continue;
      depths.push({
        workspaceId,
        entries: kept.length,
        bytes: bytesOf(kept),
        ageMs: performance.now() - (kept[0]?.atMs ?? 0),
      });
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

const bytesOf = (lines: readonly Line[]): number => lines.reduce((sum, { line }) => sum + line.length, 0);
