import type { Queryable } from "../../postgres/queryable.ts";

/** A permission or a role that keys hold directly. */
export interface Held {
  readonly workspaceId: string;
  readonly kind: "permission" | "role";
  readonly id: string;
}

/** Tables that link keys to their direct permissions and roles. */
const LINKS = {
  permission: { table: "key_permissions", column: "permission_id" },
  role: { table: "key_roles", column: "role_id" },
} as const;

/**
 * Returns the number of keys that directly hold a permission or role, up to `max`. With `live`, does not count deleted keys or keys of
 * deleted APIs.
 */
export async function countHolders(
  db: Queryable,
  { workspaceId, kind, id, max, live = false }: Held & { readonly max: number; readonly live?: boolean },
): Promise<number> {
  const { table, column } = LINKS[kind];
  const alive = `join keys k on k.id = held.key_id and k.deleted_at is null
                          join apis a on a.id = k.api_id and a.deleted_at is null`;
  const text = `select count(*) as keys
                  from (select from ${table} held
                          ${live ? alive : ""}
                         where held.workspace_id = $1 and held.${column} = $2
                         limit $3) as counted`;
  const values = [workspaceId, id, max];
  const name = `count-${live ? "live-" : ""}holders-of-${kind}`;
  const { rows } = await db.query<{ keys: number }>({ name, text, values });
  return rows[0]?.keys ?? 0;
}

/** Removes a permission or role from at most `max` keys. Returns the number of keys that were changed. */
export async function deleteSomeHoldings(
  tx: Queryable,
  { workspaceId, kind, id, max }: Held & { readonly max: number },
): Promise<number> {
  const { table, column } = LINKS[kind];
  // Selects the rows by ctid, because the planner could otherwise choose a nested loop over all links. The ctid of these rows does not
  // change in the meantime.
  const text = `delete from ${table} link
                 where link.ctid = any (array(select held.ctid
                                                from ${table} held
                                               where held.workspace_id = $1 and held.${column} = $2
                                               limit $3))`;
  const values = [workspaceId, id, max];
  const { rowCount } = await tx.query({ name: `delete-some-holdings-of-${kind}`, text, values });
  return rowCount ?? 0;
}
