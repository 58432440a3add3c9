import { inTransaction } from "../../db/transaction.ts";
import type { Call } from "../../procedure.ts";
import { deleteManaged, lockManaged } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";

/**
 * Marks an API as deleted; its keys are then no longer live. With `Postern-Release` it stays, unmanaged.
 * @throws PublicError 404, 409 `managed_by_manifest`, 412 `protected_resource`.
 */
export async function deleteApi(call: Call<unknown>, apiId: string): Promise<void> {
  const { workspaceId } = call.caller;
  await inTransaction(call.deps, async (tx) => {
    const api = await lockManaged(tx, MANAGED.api, { workspaceId, which: apiId });
    await deleteManaged(tx, call, MANAGED.api, api);
  });
}
