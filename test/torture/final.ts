import type { Pool } from "pg";
import { PERMISSION } from "./load/keys.ts";
import type { KeyState } from "./model.ts";

/*
 * The state of Postgres at the end of the run.
 */

export interface FinalKey {
  readonly workspace: string;
  readonly state: KeyState;
  /** One of the key's roles holds the permission. */
  readonly granted?: boolean;
}

export interface AuditCount {
  /** The user agent of the call. */
  readonly id: string;
  readonly event: string;
  readonly count: number;
}

export interface FinalEvent {
  readonly requestId: string;
  readonly count: number;
}

export interface Final {
  /** By the key's name. A deleted key has the same state as one that never existed. */
  readonly keys: ReadonlyMap<string, FinalKey>;
  /** Roles that hold the permission, and existing permissions, by their names in the journal. */
  readonly granting: ReadonlySet<string>;
  readonly audit: readonly AuditCount[];
  /** Request ids with more than one usage event. */
  readonly repeatedEvents: readonly FinalEvent[];
  readonly eventCount: number;
  /** Remaining credits, by the key's name, as an api-server reads them. */
  readonly credits: ReadonlyMap<string, number>;
}

type FromPostgres = Omit<Final, "credits">;

export async function readFinal(db: Pool): Promise<FromPostgres> {
  return {
    keys: await readKeys(db),
    granting: await readGranting(db),
    audit: await readAudit(db),
    repeatedEvents: await readRepeatedEvents(db),
    eventCount: await countEvents(db),
  };
}

async function readKeys(db: Pool): Promise<Map<string, FinalKey>> {
  const text = `select k.name, w.name as workspace, k.deleted_at is null as exists, k.enabled,
                       k.expires_at is not null as expired, coalesce((k.meta ->> 'note')::int, 0) as note,
                       exists (select from key_permissions kp
                                 join permissions p on p.id = kp.permission_id
                                where kp.key_id = k.id and p.slug = $1) as permitted,
                       exists (select from key_roles kr
                                 join role_permissions rp on rp.role_id = kr.role_id
                                 join permissions p on p.id = rp.permission_id
                                where kr.key_id = k.id and p.slug = $1) as granted
                  from keys k
                  join workspaces w on w.id = k.workspace_id`;
  const { rows } = await db.query<KeyState & { name: string; workspace: string; granted: boolean }>(text, [PERMISSION]);
  return new Map(rows.map(({ name, workspace, granted, ...state }) => [name, { workspace, state, granted }]));
}

async function readGranting(db: Pool): Promise<Set<string>> {
  const text = `select 'role ' || w.name || ' ' || r.name as name
                  from roles r
                  join workspaces w on w.id = r.workspace_id
                  join role_permissions rp on rp.role_id = r.id
                  join permissions p on p.id = rp.permission_id
                 where p.slug = $1
                 union all
                select 'permission ' || w.name || ' ' || p.slug
                  from permissions p
                  join workspaces w on w.id = p.workspace_id`;
  const { rows } = await db.query<{ name: string }>(text, [PERMISSION]);
  return new Set(rows.map(({ name }) => name));
}

async function readAudit(db: Pool): Promise<AuditCount[]> {
  const text = `select a.user_agent as id, a.event, count(*)::int as count
                  from audit_log a
                 where starts_with(a.user_agent, 'torture/client-') or starts_with(a.user_agent, 'torture/bulk')
                 group by a.user_agent, a.event`;
  return (await db.query<AuditCount>(text)).rows;
}

async function readRepeatedEvents(db: Pool): Promise<FinalEvent[]> {
  const text = `select e.request_id as "requestId", count(*)::int as count
                  from verification_events e
                 group by e.request_id
                having count(*) > 1
                 limit 100`;
  return (await db.query<FinalEvent>(text)).rows;
}

async function countEvents(db: Pool): Promise<number> {
  const { rows } = await db.query<{ count: number }>("select count(*)::int as count from verification_events");
  return rows[0]?.count ?? 0;
}
