import { makeId } from "../../core/ids.ts";
import type { Queryable } from "../../postgres/queryable.ts";
import type { AuditChange, Fields } from "./audit-change.ts";

/** Object of an event. `type` is one of the names in api-v2.md section 20. */
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
    | "migration"
    | "session"
    | "signInLink";
  readonly id: string;
  readonly name?: string | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** One row of the audit log. The description contains ids, but never a secret. `changeOf` creates `before` and `after`. */
export interface AuditEvent extends AuditChange {
  readonly event: string;
  readonly description: string;
  readonly targets: readonly AuditTarget[];
}

export interface AuditActor {
  /** Kind of actor: `user` is a dashboard user, `system` a background job, `cli` a command-line user without a root key. */
  readonly type: "rootkey" | "user" | "system" | "cli";
  readonly id: string;
  readonly name: string;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** Who caused an event, and with which request. A background job has no request. */
export interface AuditContext {
  readonly workspaceId: string;
  readonly actor: AuditActor;
  readonly timeMs: number;
  readonly remoteIp?: string | undefined;
  readonly userAgent?: string | undefined;
  readonly requestId?: string | undefined;
  readonly randomBytes: (size: number) => Uint8Array;
  /**
   * Whether the events share a correlation id. Default: true. A background job sets false, because its events are about unrelated objects.
   */
  readonly areOneCall?: boolean;
}

/** Actors that can call procedures. */
export type CallingActor = AuditActor & { readonly type: "rootkey" | "user" };

/** The part of a procedure call that the audit log uses. */
export interface AuditedCall {
  readonly caller: { readonly workspaceId: string; readonly actor: CallingActor };
  readonly management: { readonly manager: string | undefined };
  readonly origin: { readonly requestId: string; readonly clientIp: string; readonly userAgent: string | undefined };
  readonly deps: {
    readonly nowMs: () => number;
    readonly randomBytes: (size: number) => Uint8Array;
    readonly joined?: { readonly events: AuditEvent[] };
  };
}

export const SYSTEM_ACTOR: AuditActor = { type: "system", id: "system", name: "system" };

/**
 * Writes the events of one call in the caller's transaction. All of them share a correlation id. For many events, pass a lazy iterable to
 * save memory: an event is larger than the change that it describes. In a joined transaction this only collects the events (see
 * `JoinedTransaction`).
 */
export async function insertAudit(tx: Queryable, call: AuditedCall, events: Iterable<AuditEvent>): Promise<void> {
  const { joined } = call.deps;
  if (joined === undefined) await insertAuditEvents(tx, auditContext(call), events);
  else joined.events.push(...events);
}

export function auditContext({ caller, management, origin, deps }: AuditedCall): AuditContext {
  const { manager } = management;
  const { workspaceId, actor } = caller;
  return {
    workspaceId,
    actor: manager === undefined ? actor : { ...actor, meta: { ...actor.meta, manager } },
    timeMs: deps.nowMs(),
    remoteIp: origin.clientIp,
    userAgent: origin.userAgent,
    requestId: origin.requestId,
    randomBytes: deps.randomBytes,
  };
}

/**
 * Like `insertAudit`, but for events outside of a procedure call: from a background job (whose actor is `SYSTEM_ACTOR`) or an
 * administrator.
 */
export async function insertAuditEvents(
  tx: Queryable,
  context: AuditContext,
  events: Iterable<AuditEvent>,
): Promise<void> {
  const { areOneCall = true } = context;
  let correlationId: string | null | undefined;
  let batch: AuditEvent[] = [];
  const insert = async (): Promise<void> => {
    const isOneOfSeveral = areOneCall && batch.length > 1;
    correlationId ??= isOneOfSeveral ? makeId("correlation", context.randomBytes(ID_BYTES)) : null;
    await insertBatch(tx, context, { events: batch, correlationId });
    batch = [];
  };
  for (const event of events) {
    if (batch.length === BATCH) await insert();
    batch.push(event);
  }
  if (batch.length > 0) await insert();
}

/** Number of events per statement. */
const BATCH = 1000;

async function insertBatch(
  tx: Queryable,
  context: AuditContext,
  { events, correlationId }: { events: readonly AuditEvent[]; correlationId: string | null },
): Promise<void> {
  const text = `insert into audit_log (id, workspace_id, time, event, description, actor, remote_ip, user_agent, targets,
                                       correlation_id, request_id, before, after)
                select e.id, $1, $2, e.event, e.description, $3::jsonb, $4, $5, e.targets::jsonb, $6, $7, e.before::jsonb, e.after::jsonb
                  from unnest($8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[])
                       as e (id, event, description, targets, before, after)`;
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
      events.map(({ before }) => (before === undefined ? null : JSON.stringify(before))),
      events.map(({ after }) => (after === undefined ? null : JSON.stringify(after))),
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
  /** Changed fields, with their values before the change; `null` if no fields changed or the row was written before this column existed. */
  readonly before: Fields | null;
  readonly after: Fields | null;
}

/** Exact-match filter; an omitted member matches all rows. */
export interface AuditFilter {
  readonly workspaceId: string;
  /** Start of the time range, Unix ms, inclusive like its end. */
  readonly sinceMs: number;
  readonly untilMs?: number | undefined;
  readonly event?: string | undefined;
  readonly actorId?: string | undefined;
  readonly targetId?: string | undefined;
  readonly requestId?: string | undefined;
  /** Position of the page's first row. Rows with equal times are sorted by id. */
  readonly from?: { readonly timeMs: number; readonly id: string } | undefined;
  readonly rowsMax: number;
}

/**
 * Returns rows, newest first. Each filter has an index (migrations 0001 and 0038). The statement is not prepared: a generic plan might use
 * none of these indexes, whereas a plan for the given values reads only matching rows.
 */
export async function listAudit(db: Queryable, filter: AuditFilter): Promise<AuditRow[]> {
  const text = `select l.id, l.time, l.event, l.description, l.actor, l.remote_ip, l.user_agent, l.targets, l.correlation_id,
                       l.request_id, l.before, l.after
                  from audit_log l
                 where l.workspace_id = $1 and l.time >= $2
                   and ($3::bigint is null or l.time <= $3)
                   and ($4::text is null or l.event = $4)
                   and ($5::text is null or l.actor ->> 'id' = $5)
                   and ($6::text is null or jsonb_path_query_array(l.targets, '$[*].id') @> jsonb_build_array($6::text))
                   and ($7::text is null or l.request_id = $7)
                   and ($8::bigint is null or (l.time <= $8 and (l.time < $8 or l.id >= $9)))
                 order by l.time desc, l.id
                 limit $10`;
  const { workspaceId, sinceMs, untilMs, event, actorId, targetId, requestId, from, rowsMax } = filter;
  const { rows } = await db.query<AuditRow>({
    text,
    values: [
      workspaceId,
      sinceMs,
      untilMs ?? null,
      event ?? null,
      actorId ?? null,
      targetId ?? null,
      requestId ?? null,
      from?.timeMs ?? null,
      from?.id ?? null,
      rowsMax,
    ],
  });
  return rows;
}
