import type { AskEntry } from "../journal.ts";
import { admissibleEras, type Era, expectedVerdict } from "../model.ts";
import type { Case } from "./judge.ts";

/** The eras that the answer may reflect, undefined when the key is unknown to the journal. */
export function erasOf({ histories, knowledge }: Case, ask: AskEntry): Era[] | undefined {
  const history = histories.get(ask.key);
  if (history === undefined) return undefined;
  const { process, incarnation, sentMs, answeredMs } = ask;
  const knewUpToMs = knowledge.upToMs({ process, incarnation, beforeMs: sentMs });
  return admissibleEras(history, { process, sentMs, answeredMs, knewUpToMs });
}

/** True when no era that the answer may reflect gives such an answer. */
export function contradicts(of: Case, ask: AskEntry): boolean {
  const eras = erasOf(of, ask);
  return eras !== undefined && !eras.some(({ state }) => expectedVerdict(state, ask) === ask.answer);
}

/** For the evidence: what was done to the key, as the journal has it. */
export const historyOf = ({ histories }: Case, ask: AskEntry): unknown =>
  histories.get(ask.key)?.changes.map(({ id, change, via, sentMs, acknowledgedMs }) => ({
    ...{ id, kind: change.kind, via },
    ...{ sentMs: sentMs - ask.sentMs, acknowledgedMs: acknowledgedMs && acknowledgedMs - ask.sentMs },
  }));
