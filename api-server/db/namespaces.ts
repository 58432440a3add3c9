import type { Queryable } from "../../postgres/queryable.ts";

export interface NamespaceRow {
  readonly id: string;
  readonly name: string;
  readonly manager: string | null;
  readonly created_at: number;
}

export interface NamespaceRef {
  readonly workspaceId: string;
  /** Id or name of the namespace. If both match, the id takes precedence. */
  readonly namespace: string;
}

/** Finds a live namespace. */
export async function findNamespace(
  db: Queryable,
  { workspaceId, namespace }: NamespaceRef,
): Promise<NamespaceRow | undefined> {
  const text = `select id, name, manager, created_at
                  from ratelimit_namespaces
                 where workspace_id = $1 and (id = $2 or name = $2) and deleted_at is null
                 order by (id = $2) desc
                 limit 1`;
  const { rows } = await db.query<NamespaceRow>({ name: "find-namespace", text, values: [workspaceId, namespace] });
  return rows[0];
}

/** Returns the given ids that belong to live namespaces of the workspace, in no particular order. */
export async function listNamespaceIds(
  db: Queryable,
  { workspaceId, ids }: { workspaceId: string; ids: readonly string[] },
): Promise<string[]> {
  const text = "select id from ratelimit_namespaces where workspace_id = $1 and id = any($2) and deleted_at is null";
  const { rows } = await db.query<{ id: string }>({ name: "list-namespace-ids", text, values: [workspaceId, ids] });
  return rows.map((row) => row.id);
}

/** Returns the live namespaces with these names. */
export async function listNamespacesNamed(
  db: Queryable,
  { workspaceId, names }: { workspaceId: string; names: readonly string[] },
): Promise<NamespaceRow[]> {
  const text = `select id, name, manager, created_at
                  from ratelimit_namespaces
                 where workspace_id = $1 and name = any($2) and deleted_at is null`;
  const values = [workspaceId, names];
  const { rows } = await db.query<NamespaceRow>({ name: "list-namespaces-named", text, values });
  return rows;
}

/** Finds a live namespace by its name only, even if the name is also the id of another namespace. */
export async function findNamespaceByName(
  db: Queryable,
  { workspaceId, name }: { workspaceId: string; name: string },
): Promise<NamespaceRow | undefined> {
  const text = `select id, name, manager, created_at
                  from ratelimit_namespaces
                 where workspace_id = $1 and name = $2 and deleted_at is null`;
  const { rows } = await db.query<NamespaceRow>({ name: "find-namespace-by-name", text, values: [workspaceId, name] });
  return rows[0];
}

/** Like `findNamespace`, but also locks the namespace: no other transaction can delete it until the current transaction ends. */
export async function shareLockNamespace(
  tx: Queryable,
  { workspaceId, namespace }: NamespaceRef,
): Promise<NamespaceRow | undefined> {
  const text = `select id, name, manager, created_at
                  from ratelimit_namespaces
                 where workspace_id = $1 and (id = $2 or name = $2) and deleted_at is null
                 order by (id = $2) desc
                 limit 1
                   for share`;
  const { rows } = await tx.query<NamespaceRow>({
    name: "share-lock-namespace",
    text,
    values: [workspaceId, namespace],
  });
  return rows[0];
}

/**
 * Like `findNamespace`, but also locks the namespace: other transactions cannot change its row, or add overrides, until the current
 * transaction ends.
 */
export async function lockNamespace(
  tx: Queryable,
  { workspaceId, namespace }: NamespaceRef,
): Promise<NamespaceRow | undefined> {
  const text = `select id, name, manager, created_at
                  from ratelimit_namespaces
                 where workspace_id = $1 and (id = $2 or name = $2) and deleted_at is null
                 order by (id = $2) desc
                 limit 1
                   for update`;
  const { rows } = await tx.query<NamespaceRow>({ name: "lock-namespace", text, values: [workspaceId, namespace] });
  return rows[0];
}

/** Finds a live namespace by its name only, even if the name is also the id of another namespace, and locks it against changes. */
export async function lockNamespaceByName(
  tx: Queryable,
  { workspaceId, name }: { workspaceId: string; name: string },
): Promise<NamespaceRow | undefined> {
  const text = `select id, name, manager, created_at
                  from ratelimit_namespaces
                 where workspace_id = $1 and name = $2 and deleted_at is null
                   for update`;
  const { rows } = await tx.query<NamespaceRow>({ name: "lock-namespace-by-name", text, values: [workspaceId, name] });
  return rows[0];
}

/** Finds the namespace of a limit call by id or name. A deleted namespace is found only if no live one matches. */
export async function findNamespaceEver(
  db: Queryable,
  { workspaceId, namespace }: NamespaceRef,
): Promise<{ readonly id: string; readonly name: string; readonly deleted: boolean } | undefined> {
  const text = `select id, name, deleted_at is not null as deleted
                  from ratelimit_namespaces
                 where workspace_id = $1 and (id = $2 or name = $2)
                 order by (deleted_at is null) desc, (id = $2) desc, created_at desc
                 limit 1`;
  const { rows } = await db.query<{ id: string; name: string; deleted: boolean }>({
    name: "find-namespace-ever",
    text,
    values: [workspaceId, namespace],
  });
  return rows[0];
}

/**
 * Like `findNamespaceEver`, but for several limit calls. Returns one row for each namespace that was found; `asked` is the id or name from
 * the request.
 */
export async function listNamespacesEver(
  db: Queryable,
  { workspaceId, namespaces }: { workspaceId: string; namespaces: readonly string[] },
): Promise<{ readonly asked: string; readonly id: string; readonly name: string; readonly deleted: boolean }[]> {
  const text = `select asked.namespace as asked, n.id, n.name, n.deleted_at is not null as deleted
                  from unnest($2::text[]) as asked (namespace)
                  cross join lateral (
                    select id, name, deleted_at
                      from ratelimit_namespaces
                     where workspace_id = $1 and (id = asked.namespace or name = asked.namespace)
                     order by (deleted_at is null) desc, (id = asked.namespace) desc, created_at desc
                     limit 1
                  ) n`;
  const { rows } = await db.query<{ asked: string; id: string; name: string; deleted: boolean }>({
    name: "list-namespaces-ever",
    text,
    values: [workspaceId, namespaces],
  });
  return rows;
}

/**
 * Inserts a namespace unless a live one has the same name or manager. Waits for a concurrent transaction that inserts the same namespace.
 * @returns false if nothing was inserted.
 */
export async function insertNamespace(
  tx: Queryable,
  namespace: { workspaceId: string; id: string; name: string; manager: string | null; createdAt: number },
): Promise<boolean> {
  const text = `insert into ratelimit_namespaces (id, workspace_id, name, manager, created_at)
                values ($1, $2, $3, $4, $5)
                on conflict do nothing`;
  const { id, workspaceId, name, manager, createdAt } = namespace;
  const { rowCount } = await tx.query({
    name: "insert-namespace",
    text,
    values: [id, workspaceId, name, manager, createdAt],
  });
  return rowCount === 1;
}

/** Changes the manager of a namespace. Throws a violation of `ratelimit_namespaces_manager` if the manager has another namespace. */
export async function updateNamespaceManager(
  tx: Queryable,
  { workspaceId, id, manager }: { workspaceId: string; id: string; manager: string | null },
): Promise<void> {
  const text = "update ratelimit_namespaces set manager = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "update-namespace-manager", text, values: [workspaceId, id, manager] });
}

/** Marks the namespace as deleted. To mark its overrides, call `deleteOverridesOfNamespace`. */
export async function deleteNamespace(
  tx: Queryable,
  { workspaceId, id, deletedAt }: { workspaceId: string; id: string; deletedAt: number },
): Promise<void> {
  const text = "update ratelimit_namespaces set deleted_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-namespace", text, values: [workspaceId, id, deletedAt] });
}

/**
 * Returns live namespaces starting at `cursor`, sorted by id. `search` is a substring of id or name, ignoring case; the empty string
 * matches all.
 */
export async function listNamespaces(
  db: Queryable,
  page: { workspaceId: string; cursor: string; search: string; rowsMax: number },
): Promise<NamespaceRow[]> {
  const text = `select id, name, manager, created_at
                  from ratelimit_namespaces
                 where workspace_id = $1 and deleted_at is null
                   and id >= $2
                   and (position(lower($3) in lower(id)) > 0 or position(lower($3) in lower(name)) > 0)
                 order by id
                 limit $4`;
  const { workspaceId, cursor, search, rowsMax } = page;
  const { rows } = await db.query<NamespaceRow>({
    name: "list-namespaces",
    text,
    values: [workspaceId, cursor, search, rowsMax],
  });
  return rows;
}
