import { eras, expectedVerdict } from "../model.ts";
import type { Case, Violation } from "./judge.ts";
import { contradicts, historyOf } from "./verdicts.ts";

/** The promise. */
export const BOUND_MS = 30_000;

/**
 * Revoked means refused: by the process that acknowledged it at once, by any other as soon as it says that it knows of
 * everything up to then. As that is exported, an answer later than the bound is a violation unless staleness was past it.
 */
export function judgeRevoked(of: Case): Violation[] {
  return of.recorded.asks
    .filter((ask) => ask.answer === "valid" && contradicts(of, ask))
    .map((ask) => ({
      judge: "revoked",
      what: `${ask.process} let in a key that was revoked ${sinceMs(of, ask)} ms before`,
      atMs: ask.sentMs,
      evidence: { ask, history: historyOf(of, ask) },
    }));
}

/** How long before the question the last state in which the key was good had ended. */
function sinceMs({ histories }: Case, ask: { key: string; guarded: boolean; sentMs: number }): number | undefined {
  const history = histories.get(ask.key);
  if (history === undefined) return undefined;
  const ends = eras(history)
    .filter(({ state }) => expectedVerdict(state, ask) === "valid")
    .map(({ ended }) => ended?.acknowledgedMs ?? Number.NEGATIVE_INFINITY);
  return ask.sentMs - Math.max(...ends);
}

export interface Delays {
  /** Revocations, times processes that were asked about the key afterwards. */
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** How long after each acknowledged revocation each process still let the key in; 0 when it did not. */
export function revocationDelays({ histories, recorded }: Case): Delays {
  const latest = new Map<string, number>();
  for (const ask of recorded.asks) {
    if (ask.answer !== "valid" && ask.answer !== "refused" && ask.answer !== "forbidden") continue;
    const history = histories.get(ask.key);
    if (history === undefined) continue;
    const before = eras(history).findLast(({ begun }) => (begun?.sentMs ?? 0) <= ask.answeredMs);
    const begun = before?.begun;
    if (before === undefined || begun?.acknowledgedMs === undefined || begun.acknowledgedMs > ask.sentMs) continue;
    if (expectedVerdict(before.state, ask) === "valid") continue;
    const lateMs = ask.answer === "valid" ? ask.sentMs - begun.acknowledgedMs : 0;
    const place = `${begun.id} ${ask.key} ${ask.process}`;
    latest.set(place, Math.max(lateMs, latest.get(place) ?? 0));
  }
  const sorted = [...latest.values()].sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: sorted.at(-1) ?? 0 };
}
