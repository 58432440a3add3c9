import type { Queryable } from "../../postgres/queryable.ts";
import type { NamespaceRow } from "./namespaces.ts";
import type { OverrideRow } from "./overrides.ts";
import { containing, type NamedPage } from "./pages.ts";
import { USES_COUNTED_MAX } from "./permission-matrix.ts";

/* Rate-limit namespaces and their overrides for the dashboard, sorted by name. */

export interface ListedNamespaceRow extends NamespaceRow {
  /** Number of overrides, counted up to `USES_COUNTED_MAX` + 1. */
  readonly overrides: number;
}

/** Returns live namespaces, sorted by name. The statement is not prepared, so that Postgres plans it for each search text. */
export async function listNamespacesByName(
  db: Queryable,
  { workspaceId, cursor, search, rowsMax }: NamedPage,
): Promise<ListedNamespaceRow[]> {
  const text = `select n.id, n.name, n.manager, n.created_at,
                       (select count(*)::int
                          from (select 1
                                  from ratelimit_overrides o
                                 where o.namespace_id = n.id and o.deleted_at is null
                                 limit $5 + 1) used) as overrides
                  from ratelimit_namespaces n
                 where n.workspace_id = $1 and n.deleted_at is null and n.name >= $2
                   and ($4 = '%%' or n.id ilike $4 or n.name ilike $4)
                 order by n.name
                 limit $3`;
  const values = [workspaceId, cursor, rowsMax, containing(search), USES_COUNTED_MAX];
  const { rows } = await db.query<ListedNamespaceRow>({ text, values });
  return rows;
}

export interface ListedOverrideRow extends OverrideRow {
  readonly created_at: number;
  readonly updated_at: number | null;
}

/** Returns live overrides of one namespace, sorted by identifier. */
export async function listOverridesByIdentifier(
  db: Queryable,
  { workspaceId, namespaceId, cursor, search, rowsMax }: NamedPage & { readonly namespaceId: string },
): Promise<ListedOverrideRow[]> {
  const text = `select o.id, o.identifier, o.max_count, o.duration_ms, o.async, o.manager, o.created_at, o.updated_at
                  from ratelimit_overrides o
                 where o.workspace_id = $1 and o.namespace_id = $2 and o.deleted_at is null and o.identifier >= $3
                   and ($5 = '%%' or o.id ilike $5 or o.identifier ilike $5)
                 order by o.identifier
                 limit $4`;
  const values = [workspaceId, namespaceId, cursor, rowsMax, containing(search)];
  const { rows } = await db.query<ListedOverrideRow>({ text, values });
  return rows;
}
