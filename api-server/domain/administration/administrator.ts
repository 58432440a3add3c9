import { type AuditActor, type AuditEvent, insertAuditEvents } from "../../store/audit.ts";
import type { Queryable } from "../../store/queryable.ts";
import type { Transacting } from "../../store/transaction.ts";

/*
 * Commands without a procedure in the API work directly on the database; access to it is the only permission they need. There is no root key, so nothing
 * asks for permissions; the row triggers tell the running system of each change, as they do for every other writer.
 */
export interface Administrator extends Transacting {
  /** Who it is, as the audit log will say. */
  readonly actor: AuditActor;
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
}

/** Writes what an administrator did in the log of the workspace that it concerns, in the transaction that does it. */
export function insertAdministration(
  tx: Queryable,
  { actor, nowMs, randomBytes }: Administrator,
  workspaceId: string,
  events: readonly AuditEvent[],
): Promise<void> {
  return insertAuditEvents(tx, { workspaceId, actor, timeMs: nowMs(), randomBytes }, events);
}
