import { lockNamespace, type NamespaceRef, type NamespaceRow } from "../../store/namespaces.ts";
import { inTransaction } from "../../store/transaction.ts";
import { guardManaged } from "../managed/rules.ts";
import { deleteNamespaceWithOverrides } from "../namespaces.ts";
import type { Administrator } from "./administrator.ts";

/**
 * Deletes a namespace with its overrides. undefined when the workspace has none of this id or name.
 * @throws PublicError when a manifest manages it: that manifest would make it anew.
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
    guardManaged(UNMANAGING, row, `The rate-limit namespace ${row.id}`);
    await deleteNamespaceWithOverrides(tx, { workspaceId, actor, timeMs: nowMs(), randomBytes }, row);
    return row;
  });
}

const UNMANAGING = { management: { manager: undefined, adopt: false, release: false } };
