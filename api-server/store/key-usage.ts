import type { Queryable } from "./queryable.ts";

/** When keys were last used, Unix ms: never earlier than what is known. Not a change that the pods need to hear of. */
export async function raiseLastUsed(
  tx: Queryable,
  used: ReadonlyArray<{ keyId: string; lastUsedAt: number }>,
): Promise<void> {
  const text = `update keys k
                   set last_used_at = greatest(k.last_used_at, u.last_used_at)
                  from unnest($1::text[], $2::bigint[]) as u (key_id, last_used_at)
                 where k.id = u.key_id and k.last_used_at is distinct from greatest(k.last_used_at, u.last_used_at)`;
  const values = [used.map(({ keyId }) => keyId), used.map(({ lastUsedAt }) => lastUsedAt)];
  await tx.query({ name: "raise-last-used", text, values });
}

/** The key was changed at this time. */
export async function touchKey(
  tx: Queryable,
  { workspaceId, keyId, updatedAt }: { workspaceId: string; keyId: string; updatedAt: number },
): Promise<void> {
  const text = "update keys set updated_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "touch-key", text, values: [workspaceId, keyId, updatedAt] });
}
