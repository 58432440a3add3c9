import { type ChangeEntry, SEED_ID } from "../journal.ts";
import type { Change } from "../model.ts";
import type { Case, Violation } from "./checker.ts";

const OF_KEYS: Readonly<Record<Change["kind"], string>> = {
  create: "key.create",
  enable: "key.update",
  disable: "key.update",
  expire: "key.update",
  unexpire: "key.update",
  note: "key.update",
  permit: "authorization.connect_permission_and_key",
  forbid: "authorization.disconnect_permission_and_key",
  delete: "key.delete",
  purge: "key.delete",
};

function eventOf({ subject, change: { kind } }: ChangeEntry): string {
  if (subject === "key") return OF_KEYS[kind];
  if (subject === "permission") return "permission.delete";
  return kind === "permit"
    ? "authorization.connect_role_and_permission"
    : "authorization.disconnect_role_and_permissions";
}

/** Audit exactly once: one row for each acknowledged change, at most one without a reply, none for a refused or unsent one. */
export function checkAudit({ recorded, final }: Case): Violation[] {
  const counts = new Map<string, Map<string, number>>();
  for (const { id, event, count } of final.audit) {
    const events = counts.get(id) ?? new Map<string, number>();
    counts.set(id, events.set(event, count));
  }
  const expected = [
    ...recorded.changes.filter(({ id }) => id !== SEED_ID).map((entry) => ({ entry, event: eventOf(entry) })),
    ...recorded.grants.map((entry) => ({ entry, event: "key.update" })),
  ];
  const wrong = expected.flatMap(({ entry, event }): Violation[] => {
    const count = counts.get(entry.id)?.get(event) ?? 0;
    const [min, max] = { acknowledged: [1, 1], unknown: [0, 1], refused: [0, 0] }[entry.outcome] as [number, number];
    if (count >= min && count <= max) return [];
    const what = `${count} rows of ${event} for a change that was ${entry.outcome}`;
    return [{ judge: "audit", what, atMs: entry.sentMs, evidence: { entry, count } }];
  });
  const known = new Set(expected.map(({ entry }) => entry.id));
  const unsent = [...counts.keys()]
    .filter((id) => !known.has(id))
    .map((id) => ({ judge: "audit", what: `a row for ${id}, which was not sent`, atMs: 0, evidence: { id } }));
  return [...wrong, ...unsent];
}
