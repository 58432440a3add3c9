import type { Queryable } from "../../postgres/queryable.ts";
import type { RootKeyRef } from "./root-keys.ts";

/** Records that a root key called v1 on a UTC date (`YYYY-MM-DD`). Returns false if this or a later date is already recorded. */
export async function upsertV1Use(
  tx: Queryable,
  { workspaceId, rootKeyId, date }: RootKeyRef & { date: string },
): Promise<boolean> {
  const text = `insert into root_key_v1_usage as u (workspace_id, root_key_id, last_used_on)
                values ($1, $2, $3)
                on conflict (root_key_id) do update
                   set last_used_on = excluded.last_used_on
                 where u.last_used_on < excluded.last_used_on`;
  const { rowCount } = await tx.query({ name: "upsert-v1-use", text, values: [workspaceId, rootKeyId, date] });
  return rowCount === 1;
}
