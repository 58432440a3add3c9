import type { Queryable } from "../../postgres/queryable.ts";

/*
 * Kinds of objects that a manifest can manage. Each kind has one statement that reads an object's manager, and one that finds a manager's
 * object. Both read only live objects.
 */

export const MANAGED_KINDS = ["api", "role", "permission", "namespace", "override", "key", "policy"] as const;
export type ManagedKind = (typeof MANAGED_KINDS)[number];

/** Kinds of which a manager can have at most one object. `key` is missing, because a manager can have several keys with different names. */
export type ClaimedKind = Exclude<ManagedKind, "key">;

export interface ObjectRef {
  readonly workspaceId: string;
  readonly id: string;
}

interface ManagerRow {
  readonly manager: string | null;
}

/** Type of the row that contains an object's manager, by kind. */
export interface ManagerRows {
  readonly api: ManagerRow;
  readonly role: ManagerRow;
  readonly permission: ManagerRow;
  readonly namespace: ManagerRow;
  readonly override: ManagerRow & { readonly namespace_id: string; readonly async: boolean };
  readonly key: ManagerRow & { readonly api_id: string };
  readonly policy: ManagerRow & { readonly api_id: string };
}

const FIND_MANAGER: Readonly<Record<ManagedKind, string>> = {
  api: "select manager from apis where workspace_id = $1 and id = $2 and deleted_at is null",
  role: "select manager from roles where workspace_id = $1 and id = $2",
  permission: "select manager from permissions where workspace_id = $1 and id = $2",
  namespace: "select manager from ratelimit_namespaces where workspace_id = $1 and id = $2 and deleted_at is null",
  override: `select namespace_id, async, manager
               from ratelimit_overrides
              where workspace_id = $1 and id = $2 and deleted_at is null`,
  // A key is not live if its API is deleted.
  key: `select k.api_id, k.manager
          from keys k
          join apis a on a.id = k.api_id and a.deleted_at is null
         where k.workspace_id = $1 and k.id = $2 and k.deleted_at is null`,
  policy: "select api_id, manager from policies where workspace_id = $1 and id = $2 and deleted_at is null",
};

/** Returns the manager of the object with this id; `undefined` if there is no such live object. */
export async function findManager<Kind extends ManagedKind>(
  db: Queryable,
  kind: Kind,
  { workspaceId, id }: ObjectRef,
): Promise<ManagerRows[Kind] | undefined> {
  const text = FIND_MANAGER[kind];
  const { rows } = await db.query<ManagerRows[Kind]>({
    name: `find-manager-of-${kind}`,
    text,
    values: [workspaceId, id],
  });
  return rows[0];
}

export interface ManagerRef {
  readonly workspaceId: string;
  readonly manager: string;
}

interface IdRow {
  readonly id: string;
}

/** Type of the row that identifies the object of a manager, by kind. */
export interface OwnRows {
  readonly api: IdRow;
  readonly role: IdRow;
  readonly permission: IdRow;
  readonly namespace: IdRow;
  readonly override: IdRow;
  readonly policy: IdRow & { readonly version: number };
}

const FIND_OWN: Readonly<Record<ClaimedKind, string>> = {
  api: "select id from apis where workspace_id = $1 and manager = $2 and deleted_at is null",
  role: "select id from roles where workspace_id = $1 and manager = $2",
  permission: "select id from permissions where workspace_id = $1 and manager = $2",
  namespace: "select id from ratelimit_namespaces where workspace_id = $1 and manager = $2 and deleted_at is null",
  override: "select id from ratelimit_overrides where workspace_id = $1 and manager = $2 and deleted_at is null",
  policy: "select id, version from policies where workspace_id = $1 and manager = $2 and deleted_at is null",
};

/**
 * Returns the live object of the kind with this manager; `undefined` if there is none. Overrides are searched in all namespaces, policies
 * in all APIs.
 */
export async function findOwn<Kind extends ClaimedKind>(
  db: Queryable,
  kind: Kind,
  { workspaceId, manager }: ManagerRef,
): Promise<OwnRows[Kind] | undefined> {
  const text = FIND_OWN[kind];
  const { rows } = await db.query<OwnRows[Kind]>({ name: `find-own-${kind}`, text, values: [workspaceId, manager] });
  return rows[0];
}
