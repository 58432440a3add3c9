import type { Queryable } from "../../postgres/queryable.ts";

/** Records the time at which a refill changed the keys, Unix ms. Locks the rows in id order until the transaction ends. */
export async function noteRefill(
  tx: Queryable,
  { keys, refilledAt }: { keys: ReadonlyArray<{ workspaceId: string; keyId: string }>; refilledAt: number },
): Promise<void> {
  const text = `with locked as materialized (
                  select k.id
                    from unnest($1::text[], $2::text[]) as changed (workspace_id, key_id)
                    join keys k on k.workspace_id = changed.workspace_id and k.id = changed.key_id
                   order by k.id
                     for no key update of k
                )
                update keys k
                   set updated_at = $3, last_refill_at = $3
                  from locked l
                 where k.id = l.id`;
  const values = [keys.map(({ workspaceId }) => workspaceId), keys.map(({ keyId }) => keyId), refilledAt];
  await tx.query({ name: "note-refill", text, values });
}
