import { makeId } from "../../core/ids.ts";
import type { Queryable } from "./queryable.ts";

/** The object of an event; `type` is one of the names in api-v2.md section 20. */
export interface AuditTarget {
  readonly type:
    | "key"
    | "api"
    | "keyspace"
    | "permission"
    | "role"
    | "identity"
    | "ratelimit"
    | "ratelimitNamespace"
    | "ratelimitOverride"
    | "policy"
    | "workspace"
    | "rootKey"
    | "migration";
  readonly id: string;
  readonly name?: string | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** One row of the audit log. The description names ids, never a secret. */
export interface AuditEvent {
  readonly event: string;
  readonly description: string;
  readonly targets: readonly AuditTarget[];
}

export interface AuditActor {
  /** `system` is a job of the server, `cli` a person at the command line, who needs no root key. */
  readonly type: "rootkey" | "system" | "cli";
  readonly id: string;
  readonly name: string;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** The actor and the request. A job of the server has no request. */
export interface AuditContext {
  readonly workspaceId: string;
  readonly actor: AuditActor;
  readonly timeMs: number;
  readonly remoteIp?: string | undefined;
  readonly userAgent?: string | undefined;
  readonly requestId?: string | undefined;
  readonly randomBytes: (size: number) => Uint8Array;
  /** Whether several events share a correlation id; true when left out. A job writes about many unrelated things at once. */
  readonly areOneCall?: boolean;
}

/** What of a procedure's call the log needs. */
export interface AuditedCall {
  readonly caller: {
    readonly workspaceId: string;
    readonly rootKeyId: string;
    readonly rootKeyName: string | undefined;
  };
  readonly management: { readonly manager: string | undefined };
  readonly origin: { readonly requestId: string; readonly clientIp: string; readonly userAgent: string | undefined };
  readonly deps: { readonly nowMs: () => number; readonly randomBytes: (size: number) => Uint8Array };
}

export const SYSTEM_ACTOR: AuditActor = { type: "system", id: "system", name: "system" };

/** Writes the events of one call in the caller's transaction. Several of them share a correlation id. */
export function insertAudit(tx: Queryable, call: AuditedCall, events: readonly AuditEvent[]): Promise<void> {
  return insertAuditEvents(tx, auditContext(call), events);
}

export function auditContext({ caller, management, origin, deps }: AuditedCall): AuditContext {
  const { manager } = management;
  return {
    workspaceId: caller.workspaceId,
    actor: {
      type: "rootkey",
      id: caller.rootKeyId,
      name: caller.rootKeyName ?? "root key",
      ...(manager === undefined ? {} : { meta: { manager } }),
    },
    timeMs: deps.nowMs(),
    remoteIp: origin.clientIp,
    userAgent: origin.userAgent,
    requestId: origin.requestId,
    randomBytes: deps.randomBytes,
  };
}

/** The same without a call: for a job of the server (its actor is `SYSTEM_ACTOR`), or for an administrator. */
export async function insertAuditEvents(
  tx: Queryable,
  context: AuditContext,
  events: readonly AuditEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const { areOneCall = true } = context;
  const correlationId = areOneCall && events.length > 1 ? makeId("correlation", context.randomBytes(ID_BYTES)) : null;
  const text = `insert into audit_log (id, workspace_id, time, event, description, actor, remote_ip, user_agent, targets,
                                       correlation_id, request_id)
                select e.id, $1, $2, e.event, e.description, $3::jsonb, $4, $5, e.targets::jsonb, $6, $7
                  from unnest($8::text[], $9::text[], $10::text[], $11::text[]) as e (id, event, description, targets)`;
  await tx.query({
    name: "insert-audit",
    text,
    values: [
      context.workspaceId,
      context.timeMs,
      JSON.stringify(context.actor),
      context.remoteIp ?? null,
      context.userAgent ?? null,
      correlationId,
      context.requestId ?? null,
      events.map(() => makeId("auditEvent", context.randomBytes(ID_BYTES))),
      events.map(({ event }) => event),
      events.map(({ description }) => description),
      events.map(({ targets }) => JSON.stringify(targets)),
    ],
  });
}

const ID_BYTES = 24;

export interface AuditRow {
  readonly id: string;
  readonly time: number;
  readonly event: string;
  readonly description: string;
  readonly actor: AuditActor;
  readonly remote_ip: string | null;
  readonly user_agent: string | null;
  readonly targets: AuditTarget[];
  readonly correlation_id: string | null;
  readonly request_id: string | null;
}

/** Newest first, by the index `audit_log_by_time`. `event` and `targetId` are matched exactly; null matches all. */
export async function listAudit(
  db: Queryable,
  filter: {
    readonly workspaceId: string;
    readonly sinceMs: number;
    readonly event: string | null;
    readonly targetId: string | null;
    readonly rowsMax: number;
  },
): Promise<AuditRow[]> {
  const text = `select id, time, event, description, actor, remote_ip, user_agent, targets, correlation_id, request_id
                  from audit_log
                 where workspace_id = $1 and time >= $2
                   and ($3::text is null or event = $3)
                   and ($4::text is null or targets @> jsonb_build_array(jsonb_build_object('id', $4::text)))
                 order by time desc, id
                 limit $5`;
  const { workspaceId, sinceMs, event, targetId, rowsMax } = filter;
  const { rows } = await db.query<AuditRow>({
    name: "list-audit",
    text,
    values: [workspaceId, sinceMs, event, targetId, rowsMax],
  });
  return rows;
}
