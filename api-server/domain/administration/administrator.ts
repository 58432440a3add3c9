import type { Queryable } from "../../../postgres/queryable.ts";
import {
  type AuditActor,
  type AuditContext,
  type AuditEvent,
  type AuditedCall,
  auditContext,
  insertAuditEvents,
} from "../../db/audit.ts";
import type { Transacting } from "../../db/transaction.ts";

/*
 * The actor of an administrative change: either a command, which works directly on the database and needs no permission beyond access to
 * it, or the caller of an `admin.*` procedure. Database triggers announce its changes to the running system, like those of every other
 * writer.
 */
export interface Administrator extends Transacting {
  /** Actor in the audit log. */
  readonly actor: AuditActor;
  /** The caller's request; `undefined` for a command. */
  readonly request?: Pick<AuditContext, "remoteIp" | "userAgent" | "requestId">;
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
}

/** Returns the caller as an administrator. The procedure must have checked the caller's permissions. */
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
