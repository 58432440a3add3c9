import { expectedVerdict } from "../model.ts";
import type { Case, Violation } from "./checker.ts";

/** At the end, each sidecar decides every key as Postgres has it. A limited key may have used up its limit. */
export function checkSweep({ sweep, final }: Case): Violation[] {
  // A verification that could not be decided was repeated.
  const last = new Map(sweep.map((ask) => [`${ask.process} ${ask.key}`, ask]));
  return [...last.values()].flatMap((ask): Violation[] => {
    const { state, granted = false } = final.keys.get(ask.key) ?? {};
    const wanted = state === undefined ? "refused" : expectedVerdict(state, { needs: ask.needs, granted });
    if (ask.response === wanted || (ask.response === "limited" && ask.keyKind === "limited" && wanted === "valid"))
      return [];
    const what = `${ask.process} answers ${ask.response} (${ask.detail ?? ask.status}) where Postgres says ${wanted}`;
    return [{ judge: "sweep", what, atMs: ask.sentMs, evidence: { ask, state, granted } }];
  });
}
