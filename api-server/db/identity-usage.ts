import type { Queryable } from "../../postgres/queryable.ts";
import { USES_COUNTED_MAX } from "./permission-matrix.ts";

export interface IdentityUsage {
  readonly created_at: number;
  readonly updated_at: number | null;
  /** Number of the identity's live keys, counted up to `USES_COUNTED_MAX` + 1. */
  readonly keys: number;
}

/**
 * Returns the usage of an identity that the caller has already read. If the identity's row has been removed in the meantime, the number of
 * keys is 0.
 */
export async function findIdentityUsage(
  db: Queryable,
  { workspaceId, identityId }: { workspaceId: string; identityId: string },
): Promise<IdentityUsage> {
  const text = `select i.created_at, i.updated_at,
                       (select count(*)::int
                          from (select 1
                                  from keys k
                                 where k.identity_id = i.id and k.deleted_at is null
                                 limit $3 + 1) used) as keys
                  from identities i
                 where i.workspace_id = $1 and i.id = $2`;
  const values = [workspaceId, identityId, USES_COUNTED_MAX];
  const { rows } = await db.query<IdentityUsage>({ name: "find-identity-uses", text, values });
  return rows[0] ?? { created_at: 0, updated_at: null, keys: 0 };
}
