import type { Answer } from "../journal.ts";
import type { KeyKind } from "../model.ts";
import type { Case, Violation } from "./checker.ts";
import { contradicts, historyOf } from "./verdicts.ts";

/** Each kind of key has one more reason for a refusal. */
const REFUSALS: Readonly<Record<KeyKind, ReadonlySet<Answer>>> = {
  plain: new Set(["refused", "forbidden", "limited", "exhausted"]),
  limited: new Set(["refused", "forbidden", "exhausted"]),
  credited: new Set(["refused", "forbidden", "limited"]),
};

/**
 * No good key is refused: not one that was good all the time, and not a new one, or one that is good again, once the
 * process reports that it has that change.
 */
export function checkGoodKeys(of: Case): Violation[] {
  return of.recorded.asks
    .filter((ask) => REFUSALS[ask.keyKind].has(ask.response) && contradicts(of, ask))
    .map((ask) => ({
      judge: "good keys",
      what: `${ask.process} answered ${ask.response} (${ask.detail}) for a key of which that was not so`,
      atMs: ask.sentMs,
      evidence: { ask, history: historyOf(of, ask) },
    }));
}
