import type { Queryable } from "../../postgres/queryable.ts";

export interface OverrideRow {
  readonly id: string;
  readonly identifier: string;
  readonly max_count: number;
  readonly duration_ms: number;
  readonly async: boolean;
  readonly manager: string | null;
}

/** Reference to an override by its exact identifier. A pattern is compared as plain text here. */
export interface OverrideRef {
  readonly workspaceId: string;
  readonly namespaceId: string;
  readonly identifier: string;
}

export async function findOverride(
  db: Queryable,
  { workspaceId, namespaceId, identifier }: OverrideRef,
): Promise<OverrideRow | undefined> {
  const text = `select id, identifier, max_count, duration_ms, async, manager
                  from ratelimit_overrides
                 where workspace_id = $1 and namespace_id = $2 and identifier = $3 and deleted_at is null`;
  const { rows } = await db.query<OverrideRow>({
    name: "find-override",
    text,
    values: [workspaceId, namespaceId, identifier],
  });
  return rows[0];
}

/** Like `findOverride`, but also locks the override: no other transaction can change its row until the current transaction ends. */
export async function lockOverride(
  tx: Queryable,
  { workspaceId, namespaceId, identifier }: OverrideRef,
): Promise<OverrideRow | undefined> {
  const text = `select id, identifier, max_count, duration_ms, async, manager
                  from ratelimit_overrides
                 where workspace_id = $1 and namespace_id = $2 and identifier = $3 and deleted_at is null
                   for update`;
  const { rows } = await tx.query<OverrideRow>({
    name: "lock-override",
    text,
    values: [workspaceId, namespaceId, identifier],
  });
  return rows[0];
}

/** Returns the live override of a manager with its namespace, and locks it like `lockOverride`; `undefined` if there is none. */
export async function lockOverrideOfManager(
  tx: Queryable,
  { workspaceId, manager }: { readonly workspaceId: string; readonly manager: string },
): Promise<(OverrideRow & { readonly namespace_id: string }) | undefined> {
  const text = `select id, namespace_id, identifier, max_count, duration_ms, async, manager
                  from ratelimit_overrides
                 where workspace_id = $1 and manager = $2 and deleted_at is null
                   for update`;
  const { rows } = await tx.query<OverrideRow & { readonly namespace_id: string }>({
    name: "lock-override-of-manager",
    text,
    values: [workspaceId, manager],
  });
  return rows[0];
}

/** Returns all overrides of a namespace whose identifier is a pattern. */
export async function listOverridePatterns(
  db: Queryable,
  { workspaceId, namespaceId }: { workspaceId: string; namespaceId: string },
): Promise<OverrideRow[]> {
  const text = `select id, identifier, max_count, duration_ms, async, manager
                  from ratelimit_overrides
                 where workspace_id = $1 and namespace_id = $2 and position('*' in identifier) > 0 and deleted_at is null
                 order by id`;
  const { rows } = await db.query<OverrideRow>({
    name: "list-override-patterns",
    text,
    values: [workspaceId, namespaceId],
  });
  return rows;
}

/** Returns overrides starting at `cursor`, sorted by id. */
export async function listOverrides(
  db: Queryable,
  page: { workspaceId: string; namespaceId: string; cursor: string; rowsMax: number },
): Promise<OverrideRow[]> {
  const text = `select id, identifier, max_count, duration_ms, async, manager
                  from ratelimit_overrides
                 where workspace_id = $1 and namespace_id = $2 and deleted_at is null
                   and id >= $3
                 order by id
                 limit $4`;
  const { workspaceId, namespaceId, cursor, rowsMax } = page;
  const { rows } = await db.query<OverrideRow>({
    name: "list-overrides",
    text,
    values: [workspaceId, namespaceId, cursor, rowsMax],
  });
  return rows;
}

export async function countOverrides(
  db: Queryable,
  { workspaceId, namespaceId }: { workspaceId: string; namespaceId: string },
): Promise<number> {
  const text = `select count(*)::int as count
                  from ratelimit_overrides
                 where workspace_id = $1 and namespace_id = $2 and deleted_at is null`;
  const { rows } = await db.query<{ count: number }>({
    name: "count-overrides",
    text,
    values: [workspaceId, namespaceId],
  });
  return rows[0]?.count ?? 0;
}

export interface OverrideValues {
  readonly limit: number;
  readonly durationMs: number;
  readonly async: boolean;
  readonly manager: string | null;
}

/**
 * Inserts an override unless a live override has the same identifier in the namespace, or the same manager in any namespace.
 * @returns false if nothing was inserted.
 */
export async function insertOverride(
  tx: Queryable,
  override: OverrideRef & OverrideValues & { readonly id: string; readonly createdAt: number },
): Promise<boolean> {
  const text = `insert into ratelimit_overrides
                  (id, workspace_id, namespace_id, identifier, max_count, duration_ms, async, manager, created_at)
                values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                on conflict do nothing`;
  const { id, workspaceId, namespaceId, identifier, limit, durationMs, async, manager, createdAt } = override;
  const { rowCount } = await tx.query({
    name: "insert-override",
    text,
    values: [id, workspaceId, namespaceId, identifier, limit, durationMs, async, manager, createdAt],
  });
  return rowCount === 1;
}

/** Updates an override. Throws a violation of `ratelimit_overrides_manager` if the manager has another override. */
export async function updateOverride(
  tx: Queryable,
  override: OverrideValues & { readonly workspaceId: string; readonly id: string; readonly updatedAt: number },
): Promise<void> {
  const text = `update ratelimit_overrides
                   set max_count = $3, duration_ms = $4, async = $5, manager = $6, updated_at = $7
                 where workspace_id = $1 and id = $2`;
  const { workspaceId, id, limit, durationMs, async, manager, updatedAt } = override;
  await tx.query({
    name: "update-override",
    text,
    values: [workspaceId, id, limit, durationMs, async, manager, updatedAt],
  });
}

export async function deleteOverride(
  tx: Queryable,
  { workspaceId, id, deletedAt }: { workspaceId: string; id: string; deletedAt: number },
): Promise<void> {
  const text = "update ratelimit_overrides set deleted_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-override", text, values: [workspaceId, id, deletedAt] });
}

export async function deleteOverridesOfNamespace(
  tx: Queryable,
  { workspaceId, namespaceId, deletedAt }: { workspaceId: string; namespaceId: string; deletedAt: number },
): Promise<void> {
  const text = `update ratelimit_overrides
                   set deleted_at = $3
                 where workspace_id = $1 and namespace_id = $2 and deleted_at is null`;
  await tx.query({ name: "delete-overrides-of-namespace", text, values: [workspaceId, namespaceId, deletedAt] });
}
