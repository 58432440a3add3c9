import type { CompiledPolicy } from "../../core/policies/policy.ts";
import type { Queryable } from "./queryable.ts";

export interface PolicyHeadRow {
  readonly id: string;
  readonly api_id: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly version: number;
  readonly manager: string | null;
}

export interface PolicyRow extends PolicyHeadRow {
  /** As another release may have set it: read it with `readStoredPolicy`. */
  readonly policy: unknown;
}

export interface PolicyName {
  readonly workspaceId: string;
  readonly apiId: string;
  readonly name: string;
}

export interface PolicyRef {
  readonly workspaceId: string;
  readonly policyId: string;
}

export async function findPolicy(db: Queryable, { workspaceId, policyId }: PolicyRef): Promise<PolicyRow | undefined> {
  const text = `select id, api_id, name, uid, generation, version, manager, policy
                  from policies
                 where workspace_id = $1 and id = $2 and deleted_at is null`;
  const { rows } = await db.query<PolicyRow>({ name: "find-policy", text, values: [workspaceId, policyId] });
  return rows[0];
}

export async function findPolicyByName(
  db: Queryable,
  { workspaceId, apiId, name }: PolicyName,
): Promise<PolicyRow | undefined> {
  const text = `select id, api_id, name, uid, generation, version, manager, policy
                  from policies
                 where workspace_id = $1 and api_id = $2 and name = $3 and deleted_at is null`;
  const { rows } = await db.query<PolicyRow>({
    name: "find-policy-by-name",
    text,
    values: [workspaceId, apiId, name],
  });
  return rows[0];
}

/** Like `findPolicy`, with a lock: no other transaction can change the row until this one ends. */
export async function lockPolicy(tx: Queryable, { workspaceId, policyId }: PolicyRef): Promise<PolicyRow | undefined> {
  const text = `select id, api_id, name, uid, generation, version, manager, policy
                  from policies
                 where workspace_id = $1 and id = $2 and deleted_at is null
                   for update`;
  const { rows } = await tx.query<PolicyRow>({ name: "lock-policy", text, values: [workspaceId, policyId] });
  return rows[0];
}

/** Like `findPolicyByName`, with a lock: no other transaction can change the row until this one ends. */
export async function lockPolicyByName(
  tx: Queryable,
  { workspaceId, apiId, name }: PolicyName,
): Promise<PolicyRow | undefined> {
  const text = `select id, api_id, name, uid, generation, version, manager, policy
                  from policies
                 where workspace_id = $1 and api_id = $2 and name = $3 and deleted_at is null
                   for update`;
  const { rows } = await tx.query<PolicyRow>({
    name: "lock-policy-by-name",
    text,
    values: [workspaceId, apiId, name],
  });
  return rows[0];
}

/** From `cursor` on, sorted by id; of all APIs unless one is given. */
export async function listPolicies(
  db: Queryable,
  page: { workspaceId: string; apiId: string | undefined; cursor: string; rowsMax: number },
): Promise<PolicyHeadRow[]> {
  const text = `select id, api_id, name, uid, generation, version, manager
                  from policies
                 where workspace_id = $1 and deleted_at is null
                   and ($2::text is null or api_id = $2)
                   and id >= $3
                 order by id
                 limit $4`;
  const { workspaceId, apiId, cursor, rowsMax } = page;
  const { rows } = await db.query<PolicyHeadRow>({
    name: "list-policies",
    text,
    values: [workspaceId, apiId ?? null, cursor, rowsMax],
  });
  return rows;
}

export interface PolicyStatusRow extends PolicyHeadRow {
  /** null when the API was deleted. */
  readonly api_name: string | null;
  readonly api_manager: string | null;
}

/** From `cursor` on, sorted by id, with their APIs; of all clusters unless one is given, the first part of a policy's name. */
export async function listPolicyStatuses(
  db: Queryable,
  page: { workspaceId: string; cluster: string | undefined; cursor: string; rowsMax: number },
): Promise<PolicyStatusRow[]> {
  const text = `select policies.id, policies.api_id, policies.name, policies.uid, policies.generation, policies.version,
                       policies.manager, apis.name as api_name, apis.manager as api_manager
                  from policies
                  left join apis
                    on apis.id = policies.api_id
                   and apis.workspace_id = policies.workspace_id
                   and apis.deleted_at is null
                 where policies.workspace_id = $1 and policies.deleted_at is null
                   and ($2::text is null or split_part(policies.name, '/', 1) = $2)
                   and policies.id >= $3
                 order by policies.id
                 limit $4`;
  const { workspaceId, cluster, cursor, rowsMax } = page;
  const { rows } = await db.query<PolicyStatusRow>({
    name: "list-policy-statuses",
    text,
    values: [workspaceId, cluster ?? null, cursor, rowsMax],
  });
  return rows;
}

export interface PolicyValues {
  readonly uid: string;
  readonly generation: number;
  readonly policy: CompiledPolicy;
  readonly manager: string | null;
}

/**
 * Inserts version 1 of a policy unless a live one of the API has its name, or any live one its manager.
 * @returns false when nothing was inserted.
 */
export async function insertPolicy(
  tx: Queryable,
  policy: PolicyName & PolicyValues & { readonly id: string; readonly createdAt: number },
): Promise<boolean> {
  const text = `insert into policies (id, workspace_id, api_id, name, uid, generation, policy, manager, created_at)
                values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9)
                on conflict do nothing`;
  const { rowCount } = await tx.query({
    name: "insert-policy",
    text,
    values: [
      policy.id,
      policy.workspaceId,
      policy.apiId,
      policy.name,
      policy.uid,
      policy.generation,
      JSON.stringify(policy.policy),
      policy.manager,
      policy.createdAt,
    ],
  });
  return rowCount === 1;
}

/** Stores the next version. Violates `policies_manager` when the manager has another policy. */
export async function updatePolicy(
  tx: Queryable,
  policy: PolicyRef & PolicyValues & { readonly updatedAt: number },
): Promise<{ readonly version: number }> {
  const text = `update policies
                   set uid = $3, generation = $4, policy = $5::jsonb, manager = $6, updated_at = $7, version = version + 1
                 where workspace_id = $1 and id = $2
             returning version`;
  const { rows } = await tx.query<{ version: number }>({
    name: "update-policy",
    text,
    values: [
      policy.workspaceId,
      policy.policyId,
      policy.uid,
      policy.generation,
      JSON.stringify(policy.policy),
      policy.manager,
      policy.updatedAt,
    ],
  });
  const [row] = rows;
  if (row === undefined) throw new Error(`policy ${policy.policyId} vanished while it was locked`);
  return row;
}

/** Pods do not need the manager, so that the version stays the same. Violates `policies_manager` like `updatePolicy`. */
export async function updatePolicyManager(
  tx: Queryable,
  { workspaceId, policyId, manager }: PolicyRef & { readonly manager: string | null },
): Promise<void> {
  const text = "update policies set manager = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "update-policy-manager", text, values: [workspaceId, policyId, manager] });
}

export async function deletePolicy(
  tx: Queryable,
  { workspaceId, policyId, deletedAt }: PolicyRef & { readonly deletedAt: number },
): Promise<void> {
  const text = "update policies set deleted_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-policy", text, values: [workspaceId, policyId, deletedAt] });
}
