import type { AskEntry } from "../journal.ts";
import { admissibleEras, type Era, expectedVerdict } from "../model.ts";
import type { Case } from "./checker.ts";

/** The eras that the reply may reflect; undefined for an unknown name. */
function erasOf({ histories, state }: Case, ask: AskEntry, name: string): Era[] | undefined {
  const history = histories.get(name);
  if (history === undefined) return undefined;
  const { process, incarnation, sentMs, answeredMs } = ask;
  const knewUpToMs = state.upToMs({ process, incarnation, beforeMs: sentMs });
  return admissibleEras(history, { process, sentMs, answeredMs, knewUpToMs });
}

/** Whether no admissible state, of the key and of what may grant it the permission, explains the reply. */
export function contradicts(of: Case, ask: AskEntry): boolean {
  const eras = erasOf(of, ask, ask.key);
  if (eras === undefined) return false;
  const shared = ask.through === undefined ? undefined : erasOf(of, ask, ask.through);
  const grants = shared === undefined ? [false] : shared.map(({ state }) => state.permitted);
  return !eras.some(({ state }) =>
    grants.some((granted) => expectedVerdict(state, { needs: ask.needs, granted }) === ask.response),
  );
}

/** For the evidence: the changes of the key and of what grants it the permission, in ms relative to the verification. */
export const historyOf = ({ histories }: Case, { key, through, sentMs: askedMs }: AskEntry): unknown =>
  [key, through ?? ""].flatMap((name) =>
    (histories.get(name)?.changes ?? []).map(({ id, change, via, sentMs, acknowledgedMs }) => ({
      ...{ name, id, kind: change.kind, via },
      ...{ sentMs: sentMs - askedMs, acknowledgedMs: acknowledgedMs && acknowledgedMs - askedMs },
    })),
  );
