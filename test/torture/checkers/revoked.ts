import type { Answer, AskEntry } from "../journal.ts";
import { eras, expectedVerdict, type History, type SentChange } from "../model.ts";
import type { Case, Violation } from "./checker.ts";
import { contradicts, historyOf } from "./verdicts.ts";

/** The promised time. */
export const BOUND_MS = 30_000;

/**
 * A revoked key is refused: at once by the process that acknowledged it, by any other as soon as it reports that it has all
 * changes up to then. Since staleness is exported, a later acceptance is a violation only if the reported staleness was within it.
 */
export function checkRevoked(of: Case): Violation[] {
  return of.recorded.asks
    .filter((ask) => ask.response === "valid" && contradicts(of, ask))
    .map((ask) => ({
      judge: "revoked",
      what: `${ask.process} let in a key that was revoked ${lateMs(of, ask)} ms before`,
      atMs: ask.sentMs,
      evidence: { ask, history: historyOf(of, ask) },
    }));
}

const lateMs = (of: Case, ask: AskEntry): number | undefined => {
  const acknowledgedMs = revokedBefore(of, ask)?.acknowledgedMs;
  return acknowledgedMs && ask.sentMs - acknowledgedMs;
};

export interface Delays {
  /** Number of revocations × processes at which the key was verified afterwards. */
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** How long after each acknowledged revocation each process still accepted the key; 0 when it did not. */
export function revocationDelays(of: Case): Delays {
  const latest = new Map<string, number>();
  for (const ask of of.recorded.asks) {
    const revocation = revokedBefore(of, ask);
    if (revocation?.acknowledgedMs === undefined) continue;
    const lateMs = ask.response === "valid" ? ask.sentMs - revocation.acknowledgedMs : 0;
    const place = `${revocation.id} ${ask.process}`;
    latest.set(place, Math.max(lateMs, latest.get(place) ?? 0));
  }
  const sorted = [...latest.values()].sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: sorted.at(-1) ?? 0 };
}

/** The change that was acknowledged before the verification and after which the key should have been refused. */
function revokedBefore({ histories }: Case, ask: AskEntry): SentChange | undefined {
  if (!DECIDED.has(ask.response)) return undefined;
  const latest = (name: string | undefined) =>
    eras(histories.get(name ?? "") ?? NOTHING).findLast(({ begun }) => (begun?.sentMs ?? 0) <= ask.answeredMs);
  const [own, shared] = [latest(ask.key), latest(ask.through)];
  const granted = shared?.state.permitted ?? false;
  if (own === undefined || expectedVerdict(own.state, { needs: ask.needs, granted }) === "valid") return undefined;
  const changes = [own.begun, shared?.begun].filter((begun) => begun !== undefined);
  // The later of the two revoked it; changes in flight do not count.
  if (changes.some(({ acknowledgedMs }) => acknowledgedMs === undefined || acknowledgedMs > ask.sentMs))
    return undefined;
  return changes.sort((a, b) => a.sentMs - b.sentMs).at(-1);
}

const DECIDED: ReadonlySet<Answer> = new Set(["valid", "refused", "forbidden"]);
const NOTHING: History = { key: "", workspace: "", changes: [] };
