import { PublicError } from "../../../core/errors.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { countHolders, deleteSomeHoldings } from "../../db/holders.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { deleteManaged, lockManaged } from "../managed/changes.ts";
import type { LockableResource, ManagedResource, ManagedRow, NamedObject, Removable } from "../managed/resources.ts";
import { guardManaged, isRemoval } from "../managed/rules.ts";

/** Number of links that are deleted in one transaction. */
const HOLDERS_PER_TRANSACTION = 2000;

/**
 * Removes an object from all keys that hold it, before the object is deleted. This is done only if the deleting transaction cannot remove
 * the object from so many keys: a transaction that removes a million links would hold its locks and its snapshot for most of a minute. If
 * the call is interrupted, some keys have already lost the object, and the next call continues with the others.
 * @throws PublicError the 404 of its kind, or 409 `managed_by_manifest`, before any removal.
 */
async function takeFromManyHolders<Row extends ManagedRow>(
  actor: Actor,
  resource: Pick<ManagedResource, "noun" | "notFound"> & LockableResource<Row>,
  ref: NamedObject,
): Promise<void> {
  const { deps } = actor;
  const found = await resource.find(deps.db, ref);
  if (found === undefined) throw resource.notFound(ref.which);
  guardManaged(actor, resource, found);
  if (!isRemoval(actor)) return;
  const held = { workspaceId: ref.workspaceId, kind: resource.kind, id: found.id };
  const max = HOLDERS_PER_TRANSACTION;
  if ((await countHolders(deps.db, { ...held, max: max + 1 })) <= max) return;
  while ((await inTransaction(deps, (tx) => deleteSomeHoldings(tx, { ...held, max }))) === max);
}

/** Number up to which keys are counted for an error message. */
const COUNTED_MAX = 1000;

/**
 * Deletes a permission or a role, and removes it from every key and role that holds it.
 * @param onlyIfUnused rejects the deletion while a live key holds the object. A concurrent assignment of the object to a key waits for the
 * lock, and then finds the object deleted.
 * @throws PublicError the 404 of its kind, 409 `managed_by_manifest`, or 412 `protected_resource`.
 */
export async function deleteHeld<Row extends ManagedRow>(
  actor: Actor,
  resource: ManagedResource<Row, NamedObject, Row> & LockableResource<Row> & Removable<Row>,
  ref: NamedObject,
  { onlyIfUnused = false }: { readonly onlyIfUnused?: boolean } = {},
): Promise<void> {
  if (!onlyIfUnused) await takeFromManyHolders(actor, resource, ref);
  await inTransaction(actor.deps, async (tx) => {
    const row = await lockManaged(tx, resource, ref);
    guardManaged(actor, resource, row);
    if (onlyIfUnused && isRemoval(actor))
      await requireNoHolders(tx, resource, { workspaceId: ref.workspaceId, id: row.id });
    await deleteManaged(tx, actor, resource, row);
  });
}

async function requireNoHolders(
  tx: Queryable,
  { kind, noun }: Pick<ManagedResource, "noun"> & Pick<LockableResource<ManagedRow>, "kind">,
  { workspaceId, id }: { workspaceId: string; id: string },
): Promise<void> {
  const keys = await countHolders(tx, { workspaceId, kind, id, max: COUNTED_MAX + 1, live: true });
  if (keys === 0) return;
  const many =
    keys > COUNTED_MAX ? `More than ${COUNTED_MAX} keys have` : keys === 1 ? "1 key has" : `${keys} keys have`;
  throw new PublicError("protected_resource", `${many} the ${noun} ${id}, and would lose it.`);
}
