import { expectedVerdict } from "../model.ts";
import type { Case, Violation } from "./judge.ts";

/** When all is quiet, every key is answered at each sidecar as Postgres has it. A limited one may have used up its limit. */
export function judgeSweep({ sweep, final }: Case): Violation[] {
  // What could not be decided was asked again.
  const last = new Map(sweep.map((ask) => [`${ask.process} ${ask.key}`, ask]));
  return [...last.values()].flatMap((ask): Violation[] => {
    const { state, granted = false } = final.keys.get(ask.key) ?? {};
    const wanted = state === undefined ? "refused" : expectedVerdict(state, { needs: ask.needs, granted });
    if (ask.answer === wanted || (ask.answer === "limited" && ask.keyKind === "limited" && wanted === "valid"))
      return [];
    const what = `${ask.process} answers ${ask.answer} (${ask.detail ?? ask.status}) where Postgres says ${wanted}`;
    return [{ judge: "sweep", what, atMs: ask.sentMs, evidence: { ask, state, granted } }];
  });
}
