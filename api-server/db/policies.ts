import type { CompiledPolicy } from "../../core/policies/policy.ts";
import type { Queryable } from "../../postgres/queryable.ts";

export interface PolicyHeadRow {
  readonly id: string;
  /** Former id of the policy. Sidecars that were started with the former id still use it to read the policy and to report. */
  readonly former_id: string | null;
  readonly api_id: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly version: number;
  readonly manager: string | null;
}

export interface PolicyRow extends PolicyHeadRow {
  /** Stored policy. Another release may have written it, so `readStoredPolicy` must parse it. */
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

/** Finds a policy by its id or its former id. */
export async function findPolicy(db: Queryable, { workspaceId, policyId }: PolicyRef): Promise<PolicyRow | undefined> {
  const text = `select id, former_id, api_id, name, uid, generation, version, manager, policy
                  from policies
                 where workspace_id = $1 and (id = $2 or former_id = $2) and deleted_at is null`;
  const { rows } = await db.query<PolicyRow>({ name: "find-policy", text, values: [workspaceId, policyId] });
  return rows[0];
}

export async function findPolicyByName(
  db: Queryable,
  { workspaceId, apiId, name }: PolicyName,
): Promise<PolicyRow | undefined> {
  const text = `select id, former_id, api_id, name, uid, generation, version, manager, policy
                  from policies
                 where workspace_id = $1 and api_id = $2 and name = $3 and deleted_at is null`;
  const { rows } = await db.query<PolicyRow>({
    name: "find-policy-by-name",
    text,
    values: [workspaceId, apiId, name],
  });
  return rows[0];
}

/** Like `findPolicy`, but also locks the policy: no other transaction can change its row until the current transaction ends. */
export async function lockPolicy(tx: Queryable, { workspaceId, policyId }: PolicyRef): Promise<PolicyRow | undefined> {
  const text = `select id, former_id, api_id, name, uid, generation, version, manager, policy
                  from policies
                 where workspace_id = $1 and (id = $2 or former_id = $2) and deleted_at is null
                   for update`;
  const { rows } = await tx.query<PolicyRow>({ name: "lock-policy", text, values: [workspaceId, policyId] });
  return rows[0];
}

/** Like `findPolicyByName`, but also locks the policy: no other transaction can change its row until the current transaction ends. */
export async function lockPolicyByName(
  tx: Queryable,
  { workspaceId, apiId, name }: PolicyName,
): Promise<PolicyRow | undefined> {
  const text = `select id, former_id, api_id, name, uid, generation, version, manager, policy
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

/** Returns the policies of one API or of all APIs, starting at `cursor`, sorted by id. */
export async function listPolicies(
  db: Queryable,
  page: { workspaceId: string; apiId: string | undefined; cursor: string; rowsMax: number },
): Promise<PolicyHeadRow[]> {
  const text = `select id, former_id, api_id, name, uid, generation, version, manager
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
  /** Name of the API; `null` if the API is deleted. */
  readonly api_name: string | null;
  readonly api_manager: string | null;
}

/**
 * Returns policies with their APIs, starting at `cursor`, sorted by id. If a cluster is given, returns only its policies: those with the
 * cluster as the first part of their name.
 */
export async function listPolicyStatuses(
  db: Queryable,
  page: { workspaceId: string; cluster: string | undefined; cursor: string; rowsMax: number },
): Promise<PolicyStatusRow[]> {
  const text = `select policies.id, policies.former_id, policies.api_id, policies.name, policies.uid, policies.generation, policies.version,
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
 * Inserts a policy unless a live policy of the API has the same name, or any live policy has the same manager or id.
 * @returns false if nothing was inserted.
 */
export async function insertPolicy(
  tx: Queryable,
  policy: PolicyName & PolicyValues & { readonly id: string; readonly version: number; readonly createdAt: number },
): Promise<boolean> {
  const text = `insert into policies (id, workspace_id, api_id, name, uid, generation, version, policy, manager, created_at)
                values ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10)
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
      policy.version,
      JSON.stringify(policy.policy),
      policy.manager,
      policy.createdAt,
    ],
  });
  return rowCount === 1;
}

/** Stores the next version of a policy. Throws a violation of the index `policies_manager` if the manager has another policy. */
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

/**
 * Changes the manager of a policy. The version stays the same, because pods do not use the manager. Throws a violation of the index
 * `policies_manager` if the manager has another policy.
 */
export async function updatePolicyManager(
  tx: Queryable,
  { workspaceId, policyId, manager }: PolicyRef & { readonly manager: string | null },
): Promise<void> {
  const text = "update policies set manager = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "update-policy-manager", text, values: [workspaceId, policyId, manager] });
}

/**
 * Frees an id that is derived from a manager, so that this manager's policy can get it. A deleted policy with the id is removed. A released
 * policy, which has no manager, gets `otherId`, because clients that look up the id expect the manager's current policy. Any other live
 * policy keeps the id.
 * @returns the lowest version that no policy with this id has had yet. Pods need it because they compare versions to detect a newer policy.
 */
export async function freePolicyId(
  tx: Queryable,
  { workspaceId, policyId, otherId }: PolicyRef & { readonly otherId: string },
): Promise<number> {
  const removing = `delete from policies
                     where workspace_id = $1 and id = $2 and deleted_at is not null
                 returning version`;
  const moving = `update policies
                     set id = $3
                   where workspace_id = $1 and id = $2 and deleted_at is null and manager is null
               returning version`;
  const values = [workspaceId, policyId];
  const removed = await tx.query<{ version: number }>({ name: "remove-deleted-policy", text: removing, values });
  const moved = await tx.query<{ version: number }>({
    name: "move-policy",
    text: moving,
    values: [...values, otherId],
  });
  const [row] = [...removed.rows, ...moved.rows];
  return (row?.version ?? 0) + 1;
}

/** Changes the id of a policy, and raises its version to at least the given one. Sidecars still find the policy by its former id. */
export async function updatePolicyId(
  tx: Queryable,
  policy: PolicyRef & { readonly id: string; readonly versionMin: number },
): Promise<{ readonly version: number }> {
  const text = `update policies
                   set id = $3, former_id = id, version = greatest(version, $4)
                 where workspace_id = $1 and id = $2
             returning version`;
  const { workspaceId, policyId, id, versionMin } = policy;
  const values = [workspaceId, policyId, id, versionMin];
  const { rows } = await tx.query<{ version: number }>({ name: "update-policy-id", text, values });
  const [row] = rows;
  if (row === undefined) throw new Error(`policy ${policyId} vanished while it was locked`);
  return row;
}

/**
 * Raises the versions of all policies above the versions that were lost in a restore. Otherwise, a pod that reports a lost version would
 * seem to have the newest policy. A policy changes less than once a second, so the Unix time in seconds exceeds all of its versions.
 */
export async function renewPolicyVersions(db: Queryable): Promise<void> {
  const text = "update policies set version = greatest(version + 1, extract(epoch from clock_timestamp())::bigint)";
  await db.query({ name: "renew-policy-versions", text });
}

export async function deletePolicy(
  tx: Queryable,
  { workspaceId, policyId, deletedAt }: PolicyRef & { readonly deletedAt: number },
): Promise<void> {
  const text = "update policies set deleted_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-policy", text, values: [workspaceId, policyId, deletedAt] });
}

export interface PolicyOverviewRow extends PolicyStatusRow {
  /** Mode of the stored policy, unchecked: another release may have written the policy. */
  readonly mode: string | null;
  readonly on_stale: unknown;
  readonly rules: number;
  readonly changed_at: number;
}

/** Columns for lists of policies. The stored policy itself is not among them, because it can have 256 KiB. */
const OVERVIEW_COLUMNS = `policies.id, policies.former_id, policies.api_id, policies.name, policies.uid, policies.generation,
                       policies.version, policies.manager, apis.name as api_name, apis.manager as api_manager,
                       policies.policy ->> 'mode' as mode, policies.policy -> 'onStale' as on_stale,
                       jsonb_array_length(case when jsonb_typeof(policies.policy -> 'rules') = 'array' then policies.policy -> 'rules'
                                               else '[]' end) as rules,
                       coalesce(policies.updated_at, policies.created_at) as changed_at`;

/**
 * Returns policies whose name contains `search`, ignoring case, sorted by id, starting at `cursor`. The empty string matches every name.
 */
export async function listPolicyOverviews(
  db: Queryable,
  page: { workspaceId: string; search: string; cursor: string; rowsMax: number },
): Promise<PolicyOverviewRow[]> {
  const text = `select ${OVERVIEW_COLUMNS}
                  from policies
                  left join apis
                    on apis.id = policies.api_id
                   and apis.workspace_id = policies.workspace_id
                   and apis.deleted_at is null
                 where policies.workspace_id = $1 and policies.deleted_at is null
                   and policies.id >= $2
                   and position(lower($3) in lower(policies.name)) > 0
                 order by policies.id
                 limit $4`;
  const { workspaceId, search, cursor, rowsMax } = page;
  const values = [workspaceId, cursor, search, rowsMax];
  const { rows } = await db.query<PolicyOverviewRow>({ name: "list-policy-overviews", text, values });
  return rows;
}

/** Finds a policy by its id or its former id. */
export async function findPolicyOverview(
  db: Queryable,
  { workspaceId, policyId }: PolicyRef,
): Promise<(PolicyOverviewRow & PolicyRow) | undefined> {
  const text = `select ${OVERVIEW_COLUMNS}, policies.policy
                  from policies
                  left join apis
                    on apis.id = policies.api_id
                   and apis.workspace_id = policies.workspace_id
                   and apis.deleted_at is null
                 where policies.workspace_id = $1 and (policies.id = $2 or policies.former_id = $2)
                   and policies.deleted_at is null`;
  const values = [workspaceId, policyId];
  const { rows } = await db.query<PolicyOverviewRow & PolicyRow>({ name: "find-policy-overview", text, values });
  return rows[0];
}
