import { deleteKey, purgeKey } from "../../db/key-changes.ts";
import type { Actor } from "../actor.ts";
import type { CreditsDeps } from "../deps.ts";
import { deleteManaged, lockManaged } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { inCreditsTransaction } from "./credits-transaction.ts";

/**
 * Marks a key as deleted, or removes it together with its permissions, roles and limits.
 * @param needed permission that the root key needs on the key's API.
 * @throws PublicError 404, 403, 409 `managed_by_manifest`, in this order.
 */
export async function removeKey<Required extends RequiredPermission>(
  actor: Actor<Required, CreditsDeps>,
  {
    keyId,
    permanent,
    needed: required,
  }: { readonly keyId: string; readonly permanent: boolean; readonly needed: Required },
): Promise<void> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const ref = { workspaceId, keyId };
  await inCreditsTransaction(deps, ref, async (tx, changeCredits) => {
    const key = await lockManaged(tx, MANAGED.key, { workspaceId, which: keyId });
    actor.require(required, key.api_id);
    const removable = {
      ...MANAGED.key,
      remove: async () => {
        // Removes the Redis counter even if the key is only marked as deleted, because the key's row keeps the remaining credits.
        if (key.remaining !== null) await changeCredits((current) => (permanent ? undefined : current));
        if (permanent) await purgeKey(tx, ref);
        else await deleteKey(tx, { ...ref, deletedAt: deps.nowMs() });
      },
    };
    await deleteManaged(tx, actor, removable, key);
  });
}
