import { insertAudit } from "../../db/audit.ts";
import { deleteIdentity as deleteRow, lockIdentity } from "../../db/identities.ts";
import { listRatelimitsOfIdentity, replaceIdentityRatelimits } from "../../db/ratelimits.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { identityNotFound } from "../refusals/refusals.ts";
import { identityDeleted } from "./identities.ts";
import { limitsChanged } from "./identity-limits.ts";

/**
 * Deletes an identity and its limits. The identity's keys stay valid, but have no identity and none of these limits any more.
 * @param identity id or external id; the id takes precedence.
 * @throws PublicError 404.
 */
export async function deleteIdentity(actor: Actor, identity: string): Promise<void> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const row = await lockIdentity(tx, { workspaceId, identity });
    if (row === undefined) throw identityNotFound(identity);
    const { id: identityId, external_id: externalId } = row;
    const deletedAt = deps.nowMs();
    const deleted = await listRatelimitsOfIdentity(tx, { workspaceId, identityId });
    await replaceIdentityRatelimits(tx, { workspaceId, identityId, createdAt: deletedAt }, []);
    await deleteRow(tx, { workspaceId, identityId, deletedAt });
    const named = { id: identityId, externalId };
    await insertAudit(tx, actor, [identityDeleted(named), ...limitsChanged(named, { deleted })]);
  });
}
