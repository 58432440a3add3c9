import type { Queryable } from "../../postgres/queryable.ts";

/** Returns the slugs that keys hold directly, by key id, sorted. */
export async function listDirectPermissions(
  db: Queryable,
  { workspaceId, keyIds }: { workspaceId: string; keyIds: readonly string[] },
): Promise<ReadonlyMap<string, string[]>> {
  const text = `select kp.key_id, array_agg(p.slug order by p.slug) as slugs
                  from key_permissions kp
                  join keys k on k.id = kp.key_id and k.workspace_id = $1
                  join permissions p on p.id = kp.permission_id and p.workspace_id = $1
                 where kp.key_id = any ($2::text[])
                 group by kp.key_id`;
  const values = [workspaceId, keyIds];
  const { rows } = await db.query<{ key_id: string; slugs: string[] }>({
    name: "list-direct-permissions",
    text,
    values,
  });
  return new Map(rows.map(({ key_id, slugs }) => [key_id, slugs]));
}
