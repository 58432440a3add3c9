import type { AskEntry, Recorded } from "../journal.ts";
import { LIMIT, LIMIT_WINDOW_MS, LOCAL_WORKSPACE } from "../load/keys.ts";
import type { Case, Violation } from "./checker.ts";
import { losses, spellsOf, touches } from "./faults.ts";

/** After Redis is back, each process must notice it. */
const MEND_MS = 5_000;
/** A tolerance for clocks: Redis counts by its own, which is this machine's, to the millisecond. */
const EDGE_MS = 2;

/**
 * Strict limits are never exceeded in an aligned window. If the store lost its data in the window, counting began again. If it was
 * down (or the whole machine hung), each process that got requests counted for itself. So each loss and each process allows one more
 * window's worth. A sidecar whose policy counts locally does so also when the store is slow, and reports how often.
 */
export function checkLimits({ recorded }: Case): Violation[] {
  const { faults } = recorded;
  const away = spellsOf(faults, { mendMs: MEND_MS, isMeant: ({ kind }) => kind.includes("redis") || kind === "stall" });
  const lost = losses(faults);
  const windows = new Map<string, AskEntry[]>();
  for (const ask of recorded.asks) {
    if (ask.response !== "valid" || ask.keyKind !== "limited") continue;
    const window = Math.floor((ask.sentMs - EDGE_MS) / LIMIT_WINDOW_MS);
    // A request that may have been counted in the next window is left out.
    if (Math.floor((ask.answeredMs + EDGE_MS) / LIMIT_WINDOW_MS) !== window) continue;
    const place = `${ask.key} ${window}`;
    windows.set(place, [...(windows.get(place) ?? []), ask]);
  }
  return [...windows.values()].flatMap((asks): Violation[] => {
    const [first] = asks;
    if (first === undefined) return [];
    const fromMs = Math.floor(first.sentMs / LIMIT_WINDOW_MS) * LIMIT_WINDOW_MS;
    const toMs = fromMs + LIMIT_WINDOW_MS;
    const lossCount = lost.filter(({ startedMs, endedMs }) => startedMs <= toMs && endedMs >= fromMs).length;
    if (asks.length <= LIMIT * (1 + lossCount)) return [];
    const isUnavailable = touches(away, fromMs, toMs);
    const asked = [...new Set(asks.map(({ process }) => process))];
    const processes = asked.filter(
      (process) => isUnavailable || countedAlone(recorded, first, { process, fromMs, toMs }),
    ).length;
    const bound = LIMIT * (1 + lossCount + processes);
    if (asks.length <= bound) return [];
    const what = `${asks.length} requests let in where ${bound} are the most`;
    return [{ judge: "limits", what, atMs: fromMs, evidence: { key: first.key, lossCount, processes } }];
  });
}

/** Whether the process may have found the store too slow in that time, and counted for itself. */
function countedAlone(
  { samples }: Recorded,
  { workspace }: AskEntry,
  { process, fromMs, toMs }: { process: string; fromMs: number; toMs: number },
): boolean {
  if (workspace !== LOCAL_WORKSPACE) return false;
  const own = samples.filter((sample) => sample.process === process && sample.limitFailures !== undefined);
  const before = own.findLast(({ answeredMs }) => answeredMs <= fromMs);
  const after = own.find(({ sentMs }) => sentMs >= toMs);
  if (after === undefined) return own.at(-1)?.limitFailures !== (before?.limitFailures ?? 0);
  return before?.incarnation !== after.incarnation || before.limitFailures !== after.limitFailures;
}
