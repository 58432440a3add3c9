import type { Queryable } from "../../postgres/queryable.ts";

/* Highest fencing number of each cluster's operator in a workspace. An operator with a lower number has lost its leadership. */

export interface Fence {
  readonly workspaceId: string;
  /** Name of the cluster: the first part of its managers' names. */
  readonly cluster: string;
  readonly fence: number;
}

/**
 * Returns the stored fencing number and locks it against an increase until the transaction ends. Returns `undefined`, and locks nothing, if
 * the stored number is lower than `fence` or does not exist.
 */
export async function shareLockFence(
  tx: Queryable,
  { workspaceId, cluster, fence }: Fence,
): Promise<number | undefined> {
  const text = `select fence
                  from operator_fences
                 where workspace_id = $1 and cluster = $2 and fence >= $3
                   for share`;
  const values = [workspaceId, cluster, fence];
  const { rows } = await tx.query<{ fence: number }>({ name: "share-lock-fence", text, values });
  return rows[0]?.fence;
}

/**
 * Raises the stored fencing number to `fence` if it is lower, and returns the stored number. Waits for transactions that have locked the
 * number, and locks it until the transaction ends.
 */
export async function raiseFence(tx: Queryable, { workspaceId, cluster, fence }: Fence): Promise<number> {
  const text = `insert into operator_fences (workspace_id, cluster, fence)
                values ($1, $2, $3)
                on conflict (workspace_id, cluster)
                do update set fence = greatest(operator_fences.fence, excluded.fence)
                returning fence`;
  const values = [workspaceId, cluster, fence];
  const { rows } = await tx.query<{ fence: number }>({ name: "raise-fence", text, values });
  return rows[0]?.fence ?? fence;
}
