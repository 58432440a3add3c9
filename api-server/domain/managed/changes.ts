import type { Call } from "../../procedure.ts";
import { type AuditContext, type AuditEvent, auditContext, insertAuditEvents } from "../../store/audit.ts";
import { changeOf } from "../../store/audit-change.ts";
import { deleteOrphan, upsertOrphan } from "../../store/orphaned-objects.ts";
import type { Queryable } from "../../store/queryable.ts";
import { adopting, guardManaged, isRemoval, type Managing } from "./rules.ts";
import type { ManagedRow, ManagedThing, NamedObject, Removable } from "./things.ts";

/*
 * What is done to a managed object, once for all kinds: it is locked, handed over, deleted or released, and the audit log says so.
 */

/** Who does it: a caller of the API, or an administrator, who sends no headers. */
interface Acting extends Managing {
  readonly context: AuditContext;
}

const acting = (call: Call<unknown>): Acting => ({ management: call.management, context: auditContext(call) });

/** What was done to an object: `Adopted` and `Released` when its manager alone changed. */
type Done = "Created" | "Updated" | "Adopted" | "Released" | "Deleted";

/** For the audit log; the description is what was done to which object, unless another is given. */
export function auditEvent<Audited extends { readonly id: string }>(
  { noun, events, targets }: Pick<ManagedThing<never, never, Audited>, "noun" | "events" | "targets">,
  object: Audited,
  done: Done,
  description = `${done} ${noun} ${object.id}`,
): AuditEvent {
  const event = done === "Created" ? events.created : done === "Deleted" ? events.deleted : events.changed;
  return { event, description, targets: targets(object) };
}

/** The object that a call names, locked. Throws the 404 of its kind. */
export async function lockManaged<Row extends ManagedRow, Ref extends NamedObject>(
  tx: Queryable,
  { lock, notFound }: Pick<ManagedThing<Row, Ref>, "lock" | "notFound">,
  ref: Ref,
): Promise<Row> {
  const row = await lock(tx, ref);
  if (row === undefined) throw notFound(ref.which);
  return row;
}

/**
 * Writes who manages a locked object from now on, null for unmanaged, and changes nothing else of it.
 * @returns what the audit log is to say of it: nothing when that is so already.
 * @throws PublicError 409 `managed_exists`.
 */
export async function handOver<Row extends ManagedRow>(
  tx: Queryable,
  call: Call<unknown>,
  thing: ManagedThing<Row, never, Row>,
  row: Row,
  manager: string | null,
): Promise<AuditEvent[]> {
  return setManager(tx, acting(call), thing, row, manager);
}

async function setManager<Row extends ManagedRow>(
  tx: Queryable,
  actor: Acting,
  thing: ManagedThing<Row, never, Row>,
  row: Row,
  manager: string | null,
): Promise<AuditEvent[]> {
  if (manager === row.manager) return [];
  await adopting(actor, thing, () => thing.setManager(tx, row, manager, actor.context));
  const { workspaceId, timeMs } = actor.context;
  const ref = { workspaceId, kind: thing.kind, id: row.id };
  // So that the manifest finds the object again, and no other takes it without leave.
  if (manager !== null) await deleteOrphan(tx, ref);
  else if (row.manager !== null) await upsertOrphan(tx, { ...ref, lastManager: row.manager, releasedAt: timeMs });
  const change = changeOf({ manager: row.manager }, { manager });
  return [{ ...auditEvent(thing, row, manager === null ? "Released" : "Adopted"), ...change }];
}

/**
 * What a delete does to a locked object: it removes it, or, with `Postern-Release`, leaves it in the store, unmanaged. Releasing what
 * is unmanaged already does nothing and logs nothing.
 * @throws PublicError 409 `managed_elsewhere`.
 */
export const deleteManaged = <Row extends ManagedRow>(
  tx: Queryable,
  call: Call<unknown>,
  thing: ManagedThing<Row, never, Row> & Removable<Row>,
  row: Row,
): Promise<void> => deleteManagedAs(tx, acting(call), thing, row);

/** The same where there is no call. */
export async function deleteManagedAs<Row extends ManagedRow>(
  tx: Queryable,
  actor: Acting,
  thing: ManagedThing<Row, never, Row> & Removable<Row>,
  row: Row,
): Promise<void> {
  guardManaged(actor, thing, row);
  if (!isRemoval(actor)) {
    await insertAuditEvents(tx, actor.context, await setManager(tx, actor, thing, row, null));
    return;
  }
  await thing.remove(tx, row, actor.context);
  // Keys are removed by the million, and are never looked for by the manifest that left them.
  if (row.manager === null && thing.kind !== "key") {
    await deleteOrphan(tx, { workspaceId: actor.context.workspaceId, kind: thing.kind, id: row.id });
  }
  await insertAuditEvents(tx, actor.context, [auditEvent(thing, row, "Deleted")]);
}
