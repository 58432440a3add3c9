import type { Final } from "../final.ts";
import type { AskEntry, Recorded } from "../journal.ts";
import type { History, SentChange } from "../model.ts";
import { GateState } from "./gate-state.ts";

/** A broken promise. */
export interface Violation {
  readonly judge: string;
  readonly what: string;
  readonly atMs: number;
  /** What to search for in the journal. */
  readonly evidence: Readonly<Record<string, unknown>>;
}

/** What a judge may use. Judges are pure functions. */
export interface Case {
  readonly recorded: Recorded;
  readonly final: Final;
  /** Replies of the idle system at the end: every key at every sidecar. */
  readonly sweep: readonly AskEntry[];
  readonly histories: ReadonlyMap<string, History>;
  readonly state: GateState;
}

export type Checker = (of: Case) => Violation[];

export function toCase(of: Pick<Case, "recorded" | "final" | "sweep">): Case {
  return { ...of, histories: toHistories(of.recorded), state: new GateState(of.recorded.samples) };
}

/** By key: the changes that happened or may have happened. */
function toHistories({ changes }: Recorded): Map<string, History> {
  const histories = new Map<string, History & { changes: SentChange[] }>();
  for (const { id, key, workspace, change, via, sentMs, answeredMs, outcome } of changes) {
    if (outcome === "refused") continue;
    const history = histories.get(key) ?? { key, workspace, changes: [] };
    const acknowledgedMs = outcome === "acknowledged" ? answeredMs : undefined;
    history.changes.push({ id, change, via, sentMs, acknowledgedMs });
    histories.set(key, history);
  }
  return histories;
}
