import type { Queryable } from "../../postgres/queryable.ts";
import type { ClaimedKind, ManagedKind, ManagerRef, ObjectRef } from "./managed-objects.ts";

/* Last managers of orphaned objects. A row is valid only while the object is live and has no manager. */

interface OrphanRef extends ObjectRef {
  readonly kind: ManagedKind;
}

/** Records the last manager of an object. Call it in the transaction that removes the manager. */
export async function upsertOrphan(
  tx: Queryable,
  { workspaceId, kind, id, lastManager, releasedAt }: OrphanRef & { lastManager: string; releasedAt: number },
): Promise<void> {
  const text = `insert into orphaned_objects (workspace_id, kind, object_id, last_manager, released_at)
                values ($1, $2, $3, $4, $5)
                on conflict (workspace_id, kind, object_id)
                do update set last_manager = excluded.last_manager, released_at = excluded.released_at`;
  await tx.query({ name: "upsert-orphan", text, values: [workspaceId, kind, id, lastManager, releasedAt] });
}

export async function deleteOrphan(tx: Queryable, { workspaceId, kind, id }: OrphanRef): Promise<void> {
  const text = "delete from orphaned_objects where workspace_id = $1 and kind = $2 and object_id = $3";
  await tx.query({ name: "delete-orphan", text, values: [workspaceId, kind, id] });
}

/** Returns the last manager of an object that has no manager now. */
export async function findLastManager(
  db: Queryable,
  { workspaceId, kind, id }: OrphanRef,
): Promise<string | undefined> {
  const text = `select o.last_manager
                  from orphaned_objects o
                 where o.workspace_id = $1 and o.kind = $2 and o.object_id = $3`;
  const { rows } = await db.query<{ last_manager: string }>({
    name: "find-last-manager",
    text,
    values: [workspaceId, kind, id],
  });
  return rows[0]?.last_manager;
}

/** Returns the id of a live object of this kind that has no manager now and whose last manager was `manager`. */
export async function findRemaining(
  db: Queryable,
  kind: ClaimedKind,
  { workspaceId, manager }: ManagerRef,
): Promise<string | undefined> {
  const text = FIND_LEFT[kind];
  const { rows } = await db.query<{ id: string }>({ name: `find-left-${kind}`, text, values: [workspaceId, manager] });
  return rows[0]?.id;
}

const left = (kind: ClaimedKind, table: string, isLive: string): string =>
  `select x.id
     from orphaned_objects o
     join ${table} x on x.workspace_id = o.workspace_id and x.id = o.object_id and x.manager is null${isLive}
    where o.workspace_id = $1 and o.last_manager = $2 and o.kind = '${kind}'
    order by o.released_at desc, o.object_id
    limit 1`;
const NOT_DELETED = " and x.deleted_at is null";

const FIND_LEFT: Readonly<Record<ClaimedKind, string>> = {
  api: left("api", "apis", NOT_DELETED),
  role: left("role", "roles", ""),
  permission: left("permission", "permissions", ""),
  namespace: left("namespace", "ratelimit_namespaces", NOT_DELETED),
  override: left("override", "ratelimit_overrides", NOT_DELETED),
  policy: left("policy", "policies", NOT_DELETED),
};
