import type { Queryable } from "../../../postgres/queryable.ts";
import { type AuditContext, type AuditEvent, auditContext, insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { deleteOrphan, upsertOrphan } from "../../db/orphaned-objects.ts";
import type { Actor } from "../actor.ts";
import type { ManagedResource, ManagedRow, NamedObject, Removable } from "./resources.ts";
import { adopting, guardManaged, isRemoval, type Managing } from "./rules.ts";

/* Operations on managed objects of any kind: lock, transfer, delete and release, with audit events. */

/** A caller of the API or an administrator. Administrators send no management headers. */
interface Acting extends Managing {
  readonly context: AuditContext;
}

const acting = (actor: Actor): Acting => ({ management: actor.management, context: auditContext(actor) });

/** Operation on an object. `Adopted` and `Released` mean that only its manager changed. */
type Done = "Created" | "Updated" | "Adopted" | "Released" | "Deleted";

/** Returns an audit event; the default description is the operation and the object. */
export function auditEvent<Audited extends { readonly id: string }>(
  { noun, events, targets }: Pick<ManagedResource<never, never, Audited>, "noun" | "events" | "targets">,
  object: Audited,
  done: Done,
  description = `${done} ${noun} ${object.id}`,
): AuditEvent {
  const event = done === "Created" ? events.created : done === "Deleted" ? events.deleted : events.changed;
  return { event, description, targets: targets(object) };
}

/** Locks and returns the object to which a call refers. Throws the PublicError 404 for the object's kind. */
export async function lockManaged<Row extends ManagedRow, Ref extends NamedObject>(
  tx: Queryable,
  { lock, notFound }: Pick<ManagedResource<Row, Ref>, "lock" | "notFound">,
  ref: Ref,
): Promise<Row> {
  const row = await lock(tx, ref);
  if (row === undefined) throw notFound(ref.which);
  return row;
}

/**
 * Writes the manager of a locked object, and leaves its other members unchanged; `null` makes the object unmanaged.
 * @returns the audit events; empty if the manager does not change.
 * @throws PublicError 409 `managed_exists`.
 */
export async function handOver<Row extends ManagedRow>(
  tx: Queryable,
  actor: Actor,
  resource: ManagedResource<Row, never, Row>,
  row: Row,
  manager: string | null,
): Promise<AuditEvent[]> {
  return setManager(tx, acting(actor), resource, row, manager);
}

async function setManager<Row extends ManagedRow>(
  tx: Queryable,
  actor: Acting,
  resource: ManagedResource<Row, never, Row>,
  row: Row,
  manager: string | null,
): Promise<AuditEvent[]> {
  if (manager === row.manager) return [];
  await adopting(actor, resource, () => resource.setManager(tx, row, manager, actor.context));
  const { workspaceId, timeMs } = actor.context;
  const ref = { workspaceId, kind: resource.kind, id: row.id };
  // The orphan row stores the object's last manager. With it, the same manifest finds the object again, and other manifests can adopt the
  // object only if they are allowed to. A managed object needs no such row.
  if (manager !== null) await deleteOrphan(tx, ref);
  else if (row.manager !== null) await upsertOrphan(tx, { ...ref, lastManager: row.manager, releasedAt: timeMs });
  const change = changeOf({ manager: row.manager }, { manager });
  return [{ ...auditEvent(resource, row, manager === null ? "Released" : "Adopted"), ...change }];
}

/**
 * Deletes a locked object or, with `Postern-Release`, keeps it as an unmanaged object. Releasing an unmanaged object has no effect and no
 * log entry.
 * @throws PublicError 409 `managed_by_manifest`.
 */
export async function deleteManaged<Row extends ManagedRow>(
  tx: Queryable,
  caller: Actor,
  resource: ManagedResource<Row, never, Row> & Removable<Row>,
  row: Row,
): Promise<void> {
  const actor = acting(caller);
  guardManaged(actor, resource, row);
  if (!isRemoval(actor)) {
    await insertAudit(tx, caller, await setManager(tx, actor, resource, row, null));
    return;
  }
  await resource.remove(tx, row, actor.context);
  // Keys get no orphan rows: there may be millions, and manifests never look up orphaned keys.
  if (row.manager === null && resource.kind !== "key") {
    await deleteOrphan(tx, { workspaceId: actor.context.workspaceId, kind: resource.kind, id: row.id });
  }
  await insertAudit(tx, caller, [auditEvent(resource, row, "Deleted")]);
}
