import { type AuditActor, type AuditEvent, insertAuditEvents } from "../../store/audit.ts";
import type { Queryable } from "../../store/queryable.ts";
import type { Transacting } from "../../store/transaction.ts";

/*
 * Commands without a procedure in the API work directly on the database; access to it is the only permission they need. The row
 * triggers announce each change to the running system, as for every other writer.
 */
export interface Administrator extends Transacting {
  /** The actor in the audit log. */
  readonly actor: AuditActor;
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
}

/** Writes an administrator's action to the audit log of its workspace, in the same transaction. */
export function insertAdministration(
  tx: Queryable,
  { actor, nowMs, randomBytes }: Administrator,
  workspaceId: string,
  events: readonly AuditEvent[],
): Promise<void> {
  return insertAuditEvents(tx, { workspaceId, actor, timeMs: nowMs(), randomBytes }, events);
}
