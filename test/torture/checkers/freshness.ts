import type { FaultEntry, SampleEntry } from "../journal.ts";
import type { Case, Violation } from "./checker.ts";
import { excusing, MEND_MS } from "./faults.ts";

/** A hanging relay is replaced within this time. */
const TAKEOVER_MS = 10_000;
/** The new relay catches up within this time. */
const AFTER_TAKEOVER_MS = 5_000;
const SPARE_MS = 5_000;

/**
 * Data is no staler than the faults explain: of the time for which nothing arrived, all but a moment lies in a fault or
 * shortly after one. An api-server that is down or hangs explains only the time until another one takes over as relay.
 */
export function checkFreshness({ recorded }: Case): Violation[] {
  const excused = excusing(recorded.faults)
    .map(excuse)
    .sort((a, b) => a.fromMs - b.fromMs);
  const worst = new Map<string, Violation>();
  for (const sample of recorded.samples) {
    const unexplainedMs = unexplained(sample, excused);
    if (unexplainedMs <= SPARE_MS) continue;
    const name = `${sample.process} ${sample.incarnation}`;
    if (worst.has(name)) continue;
    const what = `${sample.process} was stale by ${sample.streamStalenessMs} ms, of which no fault explains ${unexplainedMs}`;
    worst.set(name, { judge: "freshness", what, atMs: sample.sentMs, evidence: { sample } });
  }
  return [...worst.values()];
}

function excuse({ kind, startedMs, endedMs }: FaultEntry): { fromMs: number; toMs: number } {
  if (!kind.endsWith("api-server")) return { fromMs: startedMs, toMs: endedMs + MEND_MS };
  return { fromMs: startedMs, toMs: Math.min(endedMs, startedMs + TAKEOVER_MS) + AFTER_TAKEOVER_MS };
}

function unexplained(
  { sentMs, streamStalenessMs }: SampleEntry,
  excused: ReadonlyArray<{ fromMs: number; toMs: number }>,
): number {
  if (streamStalenessMs === undefined) return 0;
  let atMs = sentMs - streamStalenessMs;
  let unexplainedMs = 0;
  for (const { fromMs, toMs } of excused) {
    if (toMs < atMs) continue;
    if (fromMs >= sentMs) break;
    unexplainedMs += Math.max(0, fromMs - atMs);
    atMs = Math.max(atMs, toMs);
  }
  return unexplainedMs + Math.max(0, sentMs - atMs);
}
