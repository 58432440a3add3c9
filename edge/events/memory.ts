import type { EventBatch, Sent } from "./buffer.ts";
import type { Batch, BatchLimits, EventSource, KeptBudget, StreamDepth, StreamsSeen, TakenEvents } from "./contract.ts";
import { EventLines } from "./schema.ts";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const BATCH_BYTES = 512 * 1024;
/** Maximum number of events per batch. The limit on bytes is lower unless events are short. */
const BATCH_LINES_MAX = 20_000;

interface Line {
  readonly line: string;
  /** Timestamp from `performance.now()`. */
  readonly atMs: number;
}

interface Stream {
  readonly lines: Line[];
  /** Batches whose handler failed. They are delivered again unchanged. */
  readonly failed: Line[][];
}

/** The stream between the sink and the ingester of one process. Rejects events beyond a workspace's quota. */
export class MemoryEventStream implements EventSource {
  readonly #streams = new Map<string, Stream>();
  #bytesMax = KEPT_BYTES_MAX;

  append({ workspaceId, lines }: EventBatch): Sent {
    const stream = this.#streams.get(workspaceId) ?? { lines: [], failed: [] };
    this.#streams.set(workspaceId, stream);
    if (lines.length > this.#capacityBytes(bytesOf(waitingIn(stream)), this.#totalBytes())) return "refused";
    const atMs = performance.now();
    for (const line of lines.toString().split("\n")) if (line !== "") stream.lines.push({ line, atMs });
    return "stored";
  }

  async keepWithin(_: readonly string[], bytesMax: number): Promise<KeptBudget> {
    this.#bytesMax = Math.min(bytesMax, KEPT_BYTES_MAX);
    return { totalBytes: this.#bytesMax, trimmed: 0 };
  }

  async measure(workspaceIds: readonly string[]): Promise<StreamsSeen> {
    const depths: StreamDepth[] = [];
    const totalBytes = this.#totalBytes();
    for (const workspaceId of workspaceIds) {
      const stream = this.#streams.get(workspaceId);
      if (stream === undefined) continue;
      const waiting = waitingIn(stream);
      if (waiting.length === 0) continue;
      const bytes = bytesOf(waiting);
      depths.push({
        workspaceId,
        entries: waiting.length,
        bytes,
        capacityBytes: this.#capacityBytes(bytes, totalBytes),
        ageMs: performance.now() - (waiting[0]?.atMs ?? 0),
      });
    }
    return { depths, setAside: [], failed: [] };
  }

  async take(
    workspaceId: string,
    handle: (events: TakenEvents) => Promise<void>,
    { bytesEnough = BATCH_BYTES }: BatchLimits = {},
  ): Promise<Batch> {
    const stream = this.#streams.get(workspaceId);
    const batch = stream?.failed.shift() ?? stream?.lines.splice(0, linesOf(stream.lines, bytesEnough)) ?? [];
    if (batch.length === 0) return { entries: 0, unreadable: 0 };
    try {
      await handle(new EventLines(workspaceId, batch.map(({ line }) => line).join("\n")));
    } catch (error) {
      stream?.failed.unshift(batch);
      throw error;
    }
    return { entries: batch.length, unreadable: 0 };
  }

  async close(): Promise<void> {}

  /** Half of the total is reserved in equal shares, one per workspace; the other half goes to workspaces that need more. */
  #capacityBytes(bytes: number, totalBytes: number): number {
    const half = this.#bytesMax / 2;
    return Math.max(half / this.#streams.size - bytes, half - totalBytes);
  }

  #totalBytes(): number {
    return [...this.#streams.values()].reduce((sum, each) => sum + bytesOf(waitingIn(each)), 0);
  }
}

const waitingIn = ({ failed, lines }: Stream): readonly Line[] =>
  failed.length === 0 ? lines : [...failed.flat(), ...lines];

const bytesOf = (lines: readonly Line[]): number => lines.reduce((sum, { line }) => sum + line.length, 0);

/** Returns the number of lines, counted from the first, that form one batch. */
function linesOf(lines: readonly Line[], bytesEnough: number): number {
  let [count, bytes] = [0, 0];
  for (const { line } of lines) {
    if (bytes >= bytesEnough || count >= BATCH_LINES_MAX) break;
    count += 1;
    bytes += line.length;
  }
  return count;
}
