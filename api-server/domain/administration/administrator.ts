import {
  type AuditActor,
  type AuditContext,
  type AuditEvent,
  type AuditedCall,
  auditContext,
  insertAuditEvents,
} from "../../store/audit.ts";
import type { Queryable } from "../../store/queryable.ts";
import type { Transacting } from "../../store/transaction.ts";

/*
 * Who changes root keys, workspaces and settings: a command, which works directly on the database and needs no permission but access to
 * it, or the caller of a procedure `admin.*`. The row triggers announce each change to the running system, as for every other writer.
 */
export interface Administrator extends Transacting {
  /** The actor in the audit log. */
  readonly actor: AuditActor;
  /** The request of a caller; a command has none. */
  readonly request?: Pick<AuditContext, "remoteIp" | "userAgent" | "requestId">;
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
}

/** The caller of a procedure. Its permissions were checked by the procedure. */
export function administratorOf(call: AuditedCall & { readonly deps: Transacting }): Administrator {
  const { actor, remoteIp, userAgent, requestId } = auditContext(call);
  const { db, projection, wakeRelay, nowMs, randomBytes } = call.deps;
  return { db, projection, wakeRelay, actor, request: { remoteIp, userAgent, requestId }, nowMs, randomBytes };
}

/** Writes an administrator's action to the audit log of a workspace, in the same transaction. */
export function insertAdministration(
  tx: Queryable,
  { actor, request, nowMs, randomBytes }: Administrator,
  workspaceId: string,
  events: readonly AuditEvent[],
): Promise<void> {
  return insertAuditEvents(tx, { ...request, workspaceId, actor, timeMs: nowMs(), randomBytes }, events);
}
