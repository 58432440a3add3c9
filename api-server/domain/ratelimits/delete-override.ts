import { shareLockNamespace } from "../../db/namespaces.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { deleteManaged, lockManaged } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { namespaceNotFound } from "../refusals/refusals.ts";

/**
 * Deletes the override with exactly this identifier.
 * @param needed permission that the root key needs for the namespace.
 * @param ref the namespace by id or name; the id takes precedence.
 * @throws PublicError 404 if the namespace or the override does not exist, 403, 409 if another manager has the override.
 */
export async function deleteOverride<Required extends RequiredPermission>(
  actor: Actor<Required>,
  required: Required,
  ref: { readonly namespace: string; readonly identifier: string },
): Promise<void> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const namespace = await shareLockNamespace(tx, { workspaceId, namespace: ref.namespace });
    if (namespace === undefined) throw namespaceNotFound(ref.namespace);
    actor.require(required, namespace.id);
    const override = await lockManaged(tx, MANAGED.override, { workspaceId, which: ref.identifier, namespace });
    await deleteManaged(tx, actor, MANAGED.override, override);
  });
}
