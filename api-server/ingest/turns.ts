import { doubledMs } from "../../core/backoff.ts";

/*
 * Schedules the reads of each workspace's stream. A stream with entries is read again in the next round, an empty stream at increasing
 * intervals, and a failing stream even less often, so that a broken stream hardly delays the others.
 */

const IDLE = { firstMs: 200, maxMs: 1_000 };
const FAILING = { firstMs: 200, maxMs: 30_000 };

export type TurnResult = "stored" | "nothing" | "failed";

interface TimeSlice {
  readonly dueAtMs: number;
  readonly delayMs: number;
  readonly failures: number;
}

/** Returns when a stream is read next, given the result of its last time slice. */
export function nextSlice(last: TimeSlice | undefined, how: TurnResult, nowMs: number): TimeSlice {
  if (how === "stored") return { dueAtMs: nowMs, delayMs: 0, failures: 0 };
  const failures = how === "failed" ? (last?.failures ?? 0) + 1 : 0;
  const delayMs = doubledMs(last?.delayMs ?? 0, how === "failed" ? FAILING : IDLE);
  return { dueAtMs: nowMs + delayMs, delayMs, failures };
}

/** Returns the ids in the same cyclic order, starting after `id`; unchanged if `id` is not among them. */
export function startingAfter(ids: readonly string[], id: string | undefined): string[] {
  const at = id === undefined ? 0 : ids.indexOf(id) + 1;
  return [...ids.slice(at), ...ids.slice(0, at)];
}

export class IngestScheduler {
  readonly #turns = new Map<string, TimeSlice>();
  #lastId: string | undefined;

  /** Returns the due workspaces, starting after the last one that was read and wrapping around. */
  due(workspaceIds: readonly string[], nowMs: number): string[] {
    // Drops the state of deleted workspaces.
    if (this.#turns.size > 2 * workspaceIds.length + 100) {
      const known = new Set(workspaceIds);
      for (const id of this.#turns.keys()) if (!known.has(id)) this.#turns.delete(id);
    }
    const due = workspaceIds.filter((id) => (this.#turns.get(id)?.dueAtMs ?? 0) <= nowMs);
    return startingAfter(due, this.#lastId);
  }

  began(workspaceId: string): void {
    this.#lastId = workspaceId;
  }

  /** Records the end of a time slice. Returns the number of consecutive failures. */
  ended(workspaceId: string, how: TurnResult, nowMs: number): number {
    const turn = nextSlice(this.#turns.get(workspaceId), how, nowMs);
    this.#turns.set(workspaceId, turn);
    return turn.failures;
  }
}
