import { isDeepStrictEqual } from "node:util";
import type { PoolClient } from "pg";
import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import { policyIdOf } from "../../../core/policies/policy-id.ts";
import { shareLockApi } from "../../db/apis.ts";
import { type AuditEvent, insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import {
  freePolicyId,
  insertPolicy,
  lockPolicyByName,
  type PolicyRow,
  updatePolicy,
  updatePolicyId,
  updatePolicyManager,
} from "../../db/policies.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { auditEvent } from "../managed/changes.ts";
import { findCreated } from "../managed/create-once.ts";
import { MANAGED } from "../managed/resources.ts";
import { adopting, guardManaged } from "../managed/rules.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { apiNotFound, invalidField } from "../refusals/refusals.ts";

/** Maximum number of attempts. An attempt fails if another call creates the policy in the meantime. */
const ATTEMPTS_MAX = 5;

const POLICY_BYTES_MAX = 262_144;

export interface RequestedPolicy {
  readonly apiId: string;
  readonly manager: string;
  /** `<cluster>/<namespace>/<name>` of the manifest. */
  readonly name: string;
  /** Uid of the manifest. Generations are compared only within one uid. */
  readonly uid: string;
  readonly generation: number;
  readonly policy: CompiledPolicy;
}

export interface StoredVersion {
  readonly policyId: string;
  readonly version: number;
}

/**
 * Stores the compiled policy of a manifest. The policy is identified by its API and its name.
 * @throws PublicError 400 for a policy that is too large, 404 for the API, 403, 409 for an older generation or another manager.
 */
export async function setPolicy<Required extends RequiredPermission>(
  actor: Actor<Required>,
  required: Required,
  requested: RequestedPolicy,
): Promise<StoredVersion> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const { apiId, name } = requested;
  requireSize(requested.policy);
  return inTransaction(deps, async (tx) => {
    const api = await shareLockApi(tx, { workspaceId, apiId });
    if (api === undefined) throw apiNotFound(apiId);
    actor.require(required, apiId);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const current = await lockPolicyByName(tx, { workspaceId, apiId, name });
      const setting: Setting = { actor, requested };
      const stored = current === undefined ? await create(tx, setting) : await change(tx, setting, current);
      if (stored !== undefined) return stored;
    }
    throw new Error(`a policy could not be set in ${ATTEMPTS_MAX} attempts`);
  });
}

interface Setting {
  readonly actor: Actor;
  readonly requested: RequestedPolicy;
}

function requireSize(policy: CompiledPolicy): void {
  const bytes = Buffer.byteLength(JSON.stringify(policy));
  if (bytes <= POLICY_BYTES_MAX) return;
  const message = `expected a compiled policy of at most ${POLICY_BYTES_MAX} bytes of JSON, got ${bytes}`;
  throw invalidField("body.spec", message);
}

/** Creates a policy. Returns `undefined` if another transaction has just created a policy with this name. */
async function create(tx: PoolClient, { actor, requested }: Setting): Promise<StoredVersion | undefined> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const { apiId, manager, name, uid, generation, policy } = requested;
  // A manager has at most one policy. The id of the existing policy is returned, so that a repeated call succeeds.
  const own = await findCreated(tx, actor, "policy");
  if (own !== undefined) return { policyId: own.id, version: own.version };
  const otherId = makeId("policy", deps.randomBytes(16));
  const id = policyIdOf({ workspaceId, manager });
  const version = await freePolicyId(tx, { workspaceId, policyId: id, otherId });
  const createdAt = deps.nowMs();
  const values = { id, workspaceId, apiId, name, uid, generation, version, policy, manager, createdAt };
  if (!(await insertPolicy(tx, values))) return undefined;
  await insertAudit(tx, actor, [policyEvent(requested, id, "Created")]);
  return { policyId: id, version };
}

async function change(tx: PoolClient, { actor, requested }: Setting, current: PolicyRow): Promise<StoredVersion> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const { manager, uid, generation, policy } = requested;
  const { id: policyId } = current;
  guardManaged(actor, MANAGED.policy, current);
  // The manager determines the id. A released policy has a different id if its manager later created a policy for another API.
  const id = policyIdOf({ workspaceId, manager });
  if (current.uid === uid && generation < current.generation) {
    throw new PublicError(
      "stale_policy_generation",
      `Generation ${current.generation} of the policy ${policyId} is already stored; generation ${generation} is older.`,
    );
  }
  const isSame = current.uid === uid && current.generation === generation && isDeepStrictEqual(current.policy, policy);
  if (isSame && manager === current.manager && id === policyId) return { policyId, version: current.version };
  const stored = await adopting(actor, MANAGED.policy, async () => {
    if (isSame) {
      await updatePolicyManager(tx, { workspaceId, policyId, manager });
      return current;
    }
    const updatedAt = deps.nowMs();
    return await updatePolicy(tx, { workspaceId, policyId, uid, generation, policy, manager, updatedAt });
  });
  const { version } = id === policyId ? stored : await rename(tx, actor, { workspaceId, policyId, id });
  const before = { ...membersOf(current.policy), generation: current.generation, manager: current.manager };
  const changed = changeOf(before, { ...membersOf(policy), generation, manager });
  await insertAudit(tx, actor, [{ ...policyEvent(requested, id, "Updated"), ...changed }]);
  return { policyId: id, version };
}

/** Returns the members of a policy for the audit log; a policy contains no secret. */
const membersOf = (policy: unknown): Readonly<Record<string, unknown>> =>
  typeof policy === "object" && policy !== null ? { ...policy } : {};

/** Changes the id of a policy to the id that is derived from its manager. No other policy of this manager may exist. */
async function rename(
  tx: PoolClient,
  { deps }: Actor,
  policy: { workspaceId: string; policyId: string; id: string },
): Promise<{ readonly version: number }> {
  const { workspaceId, id } = policy;
  const otherId = makeId("policy", deps.randomBytes(16));
  const versionMin = await freePolicyId(tx, { workspaceId, policyId: id, otherId });
  return await updatePolicyId(tx, { ...policy, versionMin });
}

const policyEvent = ({ apiId, name }: RequestedPolicy, id: string, done: "Created" | "Updated"): AuditEvent =>
  auditEvent(MANAGED.policy, { id, name, api_id: apiId }, done, `${done} policy ${id} of API ${apiId}`);
