import type { Answer, AskEntry } from "../journal.ts";
import type { Case, Violation } from "./checker.ts";
import { excusing, MEND_MS, spellsOf, touches } from "./faults.ts";

const UNDECIDED: ReadonlySet<Answer> = new Set(["unavailable", "none"]);

/**
 * A counted request gets 503 when the store takes longer than 50 ms, which may happen on an overloaded machine.
 * So a few of them, and a percentage, are tolerated.
 */
const SLOW_MAX = 10;
const SLOW_PERCENT = 5;

/** Every verification gets a reply that decides, except during a fault and shortly after it. */
export function checkResponses({ recorded }: Case): Violation[] {
  const spells = spellsOf(excusing(recorded.faults), { mendMs: MEND_MS });
  const calm = recorded.asks.filter(({ sentMs, answeredMs }) => !touches(spells, sentMs, answeredMs));
  const undecided = calm.filter(({ response }) => UNDECIDED.has(response));
  const isCounted = ({ keyKind }: AskEntry) => keyKind !== "plain";
  const counted = undecided.filter(isCounted);
  const isSlow = counted.length <= SLOW_MAX + (calm.filter(isCounted).length * SLOW_PERCENT) / 100;
  return [
    ...recorded.asks.filter(({ response }) => response === "odd"),
    ...undecided.filter((ask) => !isCounted(ask)),
    ...(isSlow ? [] : counted),
  ].map((ask) => ({
    judge: "responses",
    what: `${ask.process} answered ${ask.response} (${ask.detail}), ${ask.response === "odd" ? "which no procedure has" : "with no fault near"}`,
    atMs: ask.sentMs,
    evidence: { ask },
  }));
}

/** For how long no fault excuses a reply, within the time of verifications, ms. */
export function calmMs({ recorded: { asks, faults } }: Case): number {
  const times = asks.flatMap(({ sentMs, answeredMs }) => [sentMs, answeredMs]);
  const [fromMs, toMs] = times.reduce(
    ([min, max], each) => [Math.min(min, each), Math.max(max, each)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  const spells = spellsOf(excusing(faults), { mendMs: MEND_MS });
  const excusedMs = spells.map((spell) => Math.max(0, Math.min(spell.toMs, toMs) - Math.max(spell.fromMs, fromMs)));
  return Math.max(0, toMs - fromMs - excusedMs.reduce((sum, each) => sum + each, 0));
}

/** How long after the end of the last fault a reply still said that it could not be decided, at most, ms. */
export function slowestMendMs({ recorded }: Case): number {
  const faults = excusing(recorded.faults);
  const lateMs = (ask: AskEntry): number => {
    const ends = faults.filter(({ startedMs }) => startedMs <= ask.sentMs).map(({ endedMs }) => endedMs);
    return Math.max(0, ask.sentMs - Math.max(...ends));
  };
  return Math.max(
    0,
    ...recorded.asks
      .filter(({ response }) => UNDECIDED.has(response))
      .map(lateMs)
      .filter(Number.isFinite),
  );
}
