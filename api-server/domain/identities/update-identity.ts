import type { Call } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { changeOf } from "../../store/audit-change.ts";
import { type IdentityRow, type Json, lockIdentity, updateIdentity as updateRow } from "../../store/identities.ts";
import { listRatelimitsOfIdentity, type RatelimitRow, replaceIdentityRatelimits } from "../../store/ratelimits.ts";
import { inTransaction } from "../../store/transaction.ts";
import { newRatelimits, type WantedRatelimit } from "../ratelimits/new-ratelimits.ts";
import { checkMeta } from "../refusals/check-meta.ts";
import { identityNotFound } from "../refusals/not-found.ts";
import { identityUpdated, storedMeta } from "./identities.ts";
import { checkDistinctNames, limitsChanged, planLimits } from "./identity-limits.ts";

/** Undefined stays as it is. */
export interface IdentityChange {
  /** Id or external id; the id wins. */
  readonly identity: string;
  /** Replaces all of it; an empty object removes it. */
  readonly meta: Json | undefined;
  /** Replaces all of them; a limit whose name stays keeps its id. */
  readonly ratelimits: readonly ChangedRatelimit[] | undefined;
}

/** A caller that cannot say whether a limit applies by itself leaves that as it is; a new limit then does not. */
export type ChangedRatelimit = Omit<WantedRatelimit, "autoApply"> & { readonly autoApply?: boolean };

/**
 * Changes an identity and returns it, changed, with its limits.
 * @throws PublicError 400 when its meta is too large or two limits have one name; 404.
 */
export async function updateIdentity(
  call: Call<unknown>,
  change: IdentityChange,
): Promise<{ readonly row: IdentityRow; readonly ratelimits: readonly RatelimitRow[] }> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  checkDistinctNames(change.ratelimits ?? []);
  checkMeta(change.meta);
  return inTransaction(deps, async (tx) => {
    // Locked before anything is read, so that of two concurrent calls the later one sees the result of the other.
    const row = await lockIdentity(tx, { workspaceId, identity: change.identity });
    if (row === undefined) throw identityNotFound(change.identity);
    const { id: identityId, external_id: externalId } = row;
    const updatedAt = deps.nowMs();
    const meta = change.meta === undefined ? row.meta : storedMeta(change.meta);
    await updateRow(tx, { workspaceId, identityId, meta, updatedAt });

    const current = await listRatelimitsOfIdentity(tx, { workspaceId, identityId });
    const updated = identityUpdated({ id: identityId, externalId });
    if (change.ratelimits === undefined) {
      await insertAudit(tx, call, [{ ...updated, ...changeOf({ meta: row.meta }, { meta }) }]);
      return { row: { ...row, meta }, ratelimits: current };
    }
    const wanted = newRatelimits(deps, change.ratelimits.map(keepingAutoApply(current)));
    await replaceIdentityRatelimits(tx, { workspaceId, identityId, createdAt: updatedAt }, wanted);
    const before = { meta: row.meta, ratelimits: current.map(shownLimit) };
    const after = { meta, ratelimits: change.ratelimits.map(keepingAutoApply(current)) };
    await insertAudit(tx, call, [
      { ...updated, ...changeOf(inOrder(before), inOrder(after)) },
      ...limitsChanged({ id: identityId, externalId }, planLimits(current, wanted)),
    ]);
    return { row: { ...row, meta }, ratelimits: await listRatelimitsOfIdentity(tx, { workspaceId, identityId }) };
  });
}

const shownLimit = ({ name, max_count, duration_ms, auto_apply }: RatelimitRow): WantedRatelimit => ({
  name,
  limit: max_count,
  duration: duration_ms,
  autoApply: auto_apply,
});

/** Limits have no order, so another one is no change. */
const inOrder = <T extends { readonly ratelimits: readonly WantedRatelimit[] }>(fields: T) => ({
  ...fields,
  ratelimits: fields.ratelimits
    .map(({ name, limit, duration, autoApply }) => ({ name, limit, duration, autoApply }))
    .sort((a, b) => (a.name < b.name ? -1 : 1)),
});

function keepingAutoApply(current: readonly RatelimitRow[]): (changed: ChangedRatelimit) => WantedRatelimit {
  const applied = new Map(current.map(({ name, auto_apply }) => [name, auto_apply]));
  return (changed) => ({ ...changed, autoApply: changed.autoApply ?? applied.get(changed.name) ?? false });
}
