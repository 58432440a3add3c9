import type { Queryable } from "../../postgres/queryable.ts";

/* Highest fencing number of each cluster's operator in a workspace. An operator with a lower number has lost its leadership. */

export interface FenceRef {
  readonly workspaceId: string;
  /** First part of the managers. */
  readonly cluster: string;
}

/** Returns the fencing number, and locks it against an increase until the transaction ends; `undefined` if there is none. */
export async function shareLockFence(tx: Queryable, { workspaceId, cluster }: FenceRef): Promise<number | undefined> {
  const text = "select fence from operator_fences where workspace_id = $1 and cluster = $2 for share";
  const values = [workspaceId, cluster];
  const { rows } = await tx.query<{ fence: number }>({ name: "share-lock-fence", text, values });
  return rows[0]?.fence;
}

/** Raises the fencing number; a higher stored one stays. Waits for transactions that have locked the number. */
export async function raiseFence(
  db: Queryable,
  { workspaceId, cluster, fence }: FenceRef & { readonly fence: number },
): Promise<void> {
  const text = `insert into operator_fences (workspace_id, cluster, fence)
                values ($1, $2, $3)
                on conflict (workspace_id, cluster)
                do update set fence = greatest(operator_fences.fence, excluded.fence)`;
  await db.query({ name: "raise-fence", text, values: [workspaceId, cluster, fence] });
}
