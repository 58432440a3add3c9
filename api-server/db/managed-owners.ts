import type { Queryable } from "../../postgres/queryable.ts";
import { MANAGED_KINDS, type ManagedKind, type ObjectRef } from "./managed-objects.ts";

/* Lists managed objects of all kinds for administrators, by a prefix of the managers' names. */

/** A live object that a manifest manages or has orphaned. */
export interface OwnedRow {
  readonly kind: ManagedKind;
  readonly id: string;
  /** Display name: the slug of a permission, the identifier of an override. */
  readonly name: string | null;
  readonly manager: string | null;
  /** Last manager of an orphaned object; `null` for a managed object. */
  readonly last_manager: string | null;
  readonly released_at: number | null;
}

export interface OwnedBy {
  readonly workspaceId: string;
  /** Name of a manager, or a prefix of it that ends before a slash. The empty string matches every manager. */
  readonly manager: string;
}

const SELECT_OF: Readonly<Record<ManagedKind, string>> = {
  api: "select 'api' as kind, a.id, a.name, a.manager from apis a where a.workspace_id = $1 and a.deleted_at is null",
  role: "select 'role', r.id, r.name, r.manager from roles r where r.workspace_id = $1",
  permission: "select 'permission', p.id, p.slug, p.manager from permissions p where p.workspace_id = $1",
  namespace: `select 'namespace', n.id, n.name, n.manager
                from ratelimit_namespaces n where n.workspace_id = $1 and n.deleted_at is null`,
  override: `select 'override', o.id, o.identifier, o.manager
               from ratelimit_overrides o where o.workspace_id = $1 and o.deleted_at is null`,
  // The list omits orphaned keys, because an orphaned key is like any key that was never managed.
  key: `select 'key', k.id, k.name, k.manager
          from keys k where k.workspace_id = $1 and k.manager is not null and k.deleted_at is null`,
  policy: "select 'policy', c.id, c.name, c.manager from policies c where c.workspace_id = $1 and c.deleted_at is null",
};

const LIST_OWNED = `
  with objects as (${MANAGED_KINDS.map((kind) => SELECT_OF[kind]).join("\n union all ")}),
       owned as (select x.kind, x.id, x.name, x.manager,
                        case when x.manager is null then o.last_manager end as last_manager,
                        case when x.manager is null then o.released_at end as released_at
                   from objects x
                   left join orphaned_objects o on o.workspace_id = $1 and o.kind = x.kind and o.object_id = x.id)
  select w.kind, w.id, w.name, w.manager, w.last_manager, w.released_at
    from owned w
   where coalesce(w.manager, w.last_manager) is not null
     and ($2 = '' or coalesce(w.manager, w.last_manager) = $2 or starts_with(coalesce(w.manager, w.last_manager), $2 || '/'))
   order by coalesce(w.manager, w.last_manager), w.kind, w.id
   limit $3`;

/** Returns objects sorted by manager, kind and id. */
export async function listOwned(
  db: Queryable,
  { workspaceId, manager, rowsMax }: OwnedBy & { rowsMax: number | null },
): Promise<OwnedRow[]> {
  const { rows } = await db.query<OwnedRow>({
    name: "list-owned",
    text: LIST_OWNED,
    values: [workspaceId, manager, rowsMax],
  });
  return rows;
}

const UPDATE_MANAGER: Readonly<Record<ManagedKind, string>> = {
  api: "update apis set manager = $4 where workspace_id = $1 and id = $2 and manager = $3",
  role: "update roles set manager = $4 where workspace_id = $1 and id = $2 and manager = $3",
  permission: "update permissions set manager = $4 where workspace_id = $1 and id = $2 and manager = $3",
  namespace: "update ratelimit_namespaces set manager = $4 where workspace_id = $1 and id = $2 and manager = $3",
  override: "update ratelimit_overrides set manager = $4 where workspace_id = $1 and id = $2 and manager = $3",
  key: "update keys set manager = $4 where workspace_id = $1 and id = $2 and manager = $3",
  policy: "update policies set manager = $4 where workspace_id = $1 and id = $2 and manager = $3",
};

/**
 * Changes the manager of an object. Returns false if the object has a different manager. Throws a violation of `<table>_manager` if the new
 * manager already has another object.
 */
export async function updateManager(
  tx: Queryable,
  kind: ManagedKind,
  { workspaceId, id, from, to }: ObjectRef & { from: string; to: string | null },
): Promise<boolean> {
  const text = UPDATE_MANAGER[kind];
  const { rowCount } = await tx.query({
    name: `update-manager-of-${kind}`,
    text,
    values: [workspaceId, id, from, to],
  });
  return rowCount === 1;
}
