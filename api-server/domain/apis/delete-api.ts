import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { deleteManaged, lockManaged } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";

/**
 * Marks an API as deleted; its keys are then no longer live. With `Postern-Release` it stays, unmanaged.
 * @throws PublicError 404, 409 `managed_by_manifest`, 412 `protected_resource`.
 */
export async function deleteApi(actor: Actor, apiId: string): Promise<void> {
  const { workspaceId } = actor.caller;
  await inTransaction(actor.deps, async (tx) => {
    const api = await lockManaged(tx, MANAGED.api, { workspaceId, which: apiId });
    await deleteManaged(tx, actor, MANAGED.api, api);
  });
}
