import { lockNamespace, type NamespaceRef, type NamespaceRow } from "../../db/namespaces.ts";
import { inTransaction } from "../../db/transaction.ts";
import { deleteManagedAs } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import { UNMANAGED } from "../managed/rules.ts";
import type { Administrator } from "./administrator.ts";

/**
 * Deletes a namespace with its overrides. Returns `undefined` if the workspace has no namespace with this id or name.
 * @throws PublicError if a manifest manages it, because that manifest would create it again.
 */
export async function removeNamespace(
  administrator: Administrator,
  ref: NamespaceRef,
): Promise<NamespaceRow | undefined> {
  const { workspaceId } = ref;
  const { actor, nowMs, randomBytes } = administrator;
  return inTransaction(administrator, async (tx) => {
    const row = await lockNamespace(tx, ref);
    if (row === undefined) return undefined;
    const context = { workspaceId, actor, timeMs: nowMs(), randomBytes };
    await deleteManagedAs(tx, { management: UNMANAGED, context }, MANAGED.namespace, row);
    return row;
  });
}
