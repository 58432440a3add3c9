import { ABSENT, applyChange, type History, type KeyState } from "../model.ts";
import type { Case, Violation } from "./checker.ts";

/**
 * Nothing acknowledged is lost: each key, role and permission is in Postgres as its changes leave it. The row in the audit log, which
 * is written in the same transaction, shows whether a change without a reply happened.
 */
export function checkKept(of: Case): Violation[] {
  const { histories, final, recorded } = of;
  const inAudit = new Set(final.audit.map(({ id }) => id));
  const shared = new Set(recorded.changes.filter(({ subject }) => subject !== "key").map(({ key }) => key));
  const lost = [...histories.values()].flatMap((history): Violation[] => {
    const wanted = finalState(history, inAudit);
    const isShared = shared.has(history.key);
    const found = isShared ? final.granting.has(history.key) : final.keys.get(history.key)?.state;
    if (typeof found === "boolean" ? found === wanted.permitted : isSame(wanted, found)) return [];
    const last = history.changes.at(-1);
    return [
      {
        judge: "kept",
        what: `${history.key} is not in Postgres as its changes leave it`,
        atMs: last?.sentMs ?? 0,
        evidence: { key: history.key, wanted, found, changes: history.changes },
      },
    ];
  });
  // Only this client changes these keys, so a refusal means that a key was not in the state that it had left.
  const refused = recorded.changes
    .filter(({ outcome }) => outcome === "refused")
    .map((entry) => ({
      judge: "kept",
      what: `a change of ${entry.key} was refused with ${entry.status}`,
      atMs: entry.sentMs,
      evidence: { entry },
    }));
  return [...lost, ...refused];
}

function finalState({ changes }: History, inAudit: ReadonlySet<string>): KeyState {
  let state = ABSENT;
  for (const { id, change, acknowledgedMs } of changes) {
    if (acknowledgedMs !== undefined || inAudit.has(id)) state = applyChange(state, change);
  }
  return state;
}

/** For a deleted key, nothing else is compared. */
function isSame(wanted: KeyState, found: KeyState | undefined): boolean {
  if (!wanted.exists) return found === undefined || !found.exists;
  return (
    found?.exists === true &&
    found.enabled === wanted.enabled &&
    found.expired === wanted.expired &&
    found.permitted === wanted.permitted &&
    found.note === wanted.note
  );
}
