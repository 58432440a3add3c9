import type { AuditEvent } from "../../db/audit.ts";
import type { NewRatelimit, RatelimitRow } from "../../db/ratelimits.ts";
import { invalidField } from "../refusals/refusals.ts";

/** Changes to an identity's limits, by name. */
export interface LimitsPlan {
  readonly created: readonly NewRatelimit[];
  /** Changed limits, with their existing ids. */
  readonly updated: readonly NewRatelimit[];
  readonly deleted: readonly RatelimitRow[];
}

/** Returns the changes from the current limits to the requested ones: a limit with an existing name keeps its id. */
export function planLimits(current: readonly RatelimitRow[], requested: readonly NewRatelimit[]): LimitsPlan {
  const byName = new Map(current.map((one) => [one.name, one]));
  const created: NewRatelimit[] = [];
  const updated: NewRatelimit[] = [];
  for (const limit of requested) {
    const known = byName.get(limit.name);
    if (known === undefined) created.push(limit);
    else if (!isSame(known, limit)) updated.push({ ...limit, id: known.id });
    byName.delete(limit.name);
  }
  return { created, updated, deleted: [...byName.values()] };
}

const isSame = (row: RatelimitRow, { limit, durationMs, autoApply }: NewRatelimit): boolean =>
  row.max_count === limit && row.duration_ms === durationMs && row.auto_apply === autoApply;

/** Throws PublicError 400 if two limits of a request have the same name. */
export function checkDistinctNames(ratelimits: readonly { readonly name: string }[]): void {
  const names = new Set<string>();
  for (const [index, { name }] of ratelimits.entries()) {
    if (names.has(name))
      throw invalidField(`body.ratelimits[${index}].name`, `expected distinct names, got ${name} twice`);
    names.add(name);
  }
}

interface Named {
  readonly id: string;
  readonly externalId: string;
}

/** Returns the audit events for changes that were made. */
export const limitsChanged = (identity: Named, { created, updated, deleted }: Partial<LimitsPlan>): AuditEvent[] => [
  ...(created ?? []).map((limit) => limitChanged(identity, limit, { event: "ratelimit.create", done: "Created" })),
  ...(updated ?? []).map((limit) => limitChanged(identity, limit, { event: "ratelimit.update", done: "Updated" })),
  ...(deleted ?? []).map((limit) => limitChanged(identity, limit, { event: "ratelimit.delete", done: "Deleted" })),
];

const limitChanged = (
  identity: Named,
  limit: { readonly id: string; readonly name: string },
  { event, done }: { event: string; done: string },
): AuditEvent => ({
  event,
  description: `${done} rate limit ${limit.id} of identity ${identity.id}`,
  targets: [
    { type: "identity", id: identity.id, name: identity.externalId },
    { type: "ratelimit", id: limit.id, name: limit.name },
  ],
});
