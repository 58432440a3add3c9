import type { Queryable } from "../postgres/queryable.ts";

/**
 * Stores the time at which keys were last used, Unix ms, unless a later time is already stored. The change is not projected to pods. Rows
 * are locked in the order of their ids, to avoid deadlocks.
 */
export async function raiseLastUsed(
  tx: Queryable,
  used: ReadonlyArray<{ workspaceId: string; keyId: string; lastUsedAt: number }>,
): Promise<void> {
  const text = `with locked as materialized (
                  select k.id, u.last_used_at
                    from unnest($1::text[], $2::text[], $3::bigint[]) as u (workspace_id, key_id, last_used_at)
                    join keys k on k.workspace_id = u.workspace_id and k.id = u.key_id
                   where k.last_used_at is distinct from greatest(k.last_used_at, u.last_used_at)
                   order by k.id
                     for no key update of k
                )
                update keys k
                   set last_used_at = greatest(k.last_used_at, l.last_used_at)
                  from locked l
                 where k.id = l.id`;
  const values = [
    used.map(({ workspaceId }) => workspaceId),
    used.map(({ keyId }) => keyId),
    used.map(({ lastUsedAt }) => lastUsedAt),
  ];
  await tx.query({ name: "raise-last-used", text, values });
}
