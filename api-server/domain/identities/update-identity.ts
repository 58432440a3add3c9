import { insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { type IdentityRow, type Json, lockIdentity, updateIdentity as updateRow } from "../../db/identities.ts";
import { listRatelimitsOfIdentity, type RatelimitRow, replaceIdentityRatelimits } from "../../db/ratelimits.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { newRatelimits, type RequestedRatelimit } from "../ratelimits/new-ratelimits.ts";
import { checkMeta } from "../refusals/check-meta.ts";
import { identityNotFound } from "../refusals/refusals.ts";
import { identityUpdated, storedMeta } from "./identities.ts";
import { checkDistinctNames, limitsChanged, planLimits } from "./identity-limits.ts";

/** Changes to an identity; `undefined` members stay unchanged. */
export interface IdentityChange {
  /** Id or external id of the identity. If both match, the id takes precedence. */
  readonly identity: string;
  /** New meta, which replaces the complete value; an empty object removes it. */
  readonly meta: Json | undefined;
  /** New limits. They replace all existing limits. A limit with an existing name keeps its id. */
  readonly ratelimits: readonly ChangedRatelimit[] | undefined;
}

/**
 * A requested limit. `autoApply` is `undefined` if the caller's API cannot express it: an existing limit keeps its value, and a new limit
 * gets false.
 */
export type ChangedRatelimit = Omit<RequestedRatelimit, "autoApply"> & { readonly autoApply?: boolean };

/**
 * Changes an identity and returns it with its limits.
 * @throws PublicError 400 if its meta is too large or two limits have the same name; 404.
 */
export async function updateIdentity(
  actor: Actor,
  change: IdentityChange,
): Promise<{ readonly row: IdentityRow; readonly ratelimits: readonly RatelimitRow[] }> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  checkDistinctNames(change.ratelimits ?? []);
  checkMeta(change.meta);
  return inTransaction(deps, async (tx) => {
    // Locks the identity before reading anything, so that the second of two concurrent calls sees the result of the first.
    const row = await lockIdentity(tx, { workspaceId, identity: change.identity });
    if (row === undefined) throw identityNotFound(change.identity);
    const { id: identityId, external_id: externalId } = row;
    const updatedAt = deps.nowMs();
    const meta = change.meta === undefined ? row.meta : storedMeta(change.meta);
    await updateRow(tx, { workspaceId, identityId, meta, updatedAt });

    const current = await listRatelimitsOfIdentity(tx, { workspaceId, identityId });
    const updated = identityUpdated({ id: identityId, externalId });
    if (change.ratelimits === undefined) {
      await insertAudit(tx, actor, [{ ...updated, ...changeOf({ meta: row.meta }, { meta }) }]);
      return { row: { ...row, meta }, ratelimits: current };
    }
    const requested = newRatelimits(deps, change.ratelimits.map(keepingAutoApply(current)));
    await replaceIdentityRatelimits(tx, { workspaceId, identityId, createdAt: updatedAt }, requested);
    const before = { meta: row.meta, ratelimits: current.map(shownLimit) };
    const after = { meta, ratelimits: change.ratelimits.map(keepingAutoApply(current)) };
    await insertAudit(tx, actor, [
      { ...updated, ...changeOf(inOrder(before), inOrder(after)) },
      ...limitsChanged({ id: identityId, externalId }, planLimits(current, requested)),
    ]);
    return { row: { ...row, meta }, ratelimits: await listRatelimitsOfIdentity(tx, { workspaceId, identityId }) };
  });
}

const shownLimit = ({ name, max_count, duration_ms, auto_apply }: RatelimitRow): RequestedRatelimit => ({
  name,
  limit: max_count,
  duration: duration_ms,
  autoApply: auto_apply,
});

/** Sorts the limits before comparing them, because their order does not matter. */
const inOrder = <T extends { readonly ratelimits: readonly RequestedRatelimit[] }>(fields: T) => ({
  ...fields,
  ratelimits: fields.ratelimits
    .map(({ name, limit, duration, autoApply }) => ({ name, limit, duration, autoApply }))
    .sort((a, b) => (a.name < b.name ? -1 : 1)),
});

function keepingAutoApply(current: readonly RatelimitRow[]): (changed: ChangedRatelimit) => RequestedRatelimit {
  const applied = new Map(current.map(({ name, auto_apply }) => [name, auto_apply]));
  return (changed) => ({ ...changed, autoApply: changed.autoApply ?? applied.get(changed.name) ?? false });
}
