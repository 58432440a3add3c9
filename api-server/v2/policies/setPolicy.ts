import { isDeepStrictEqual } from "node:util";
import type { PoolClient } from "pg";
import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { checkPolicy } from "../../../core/policies/check-policy.ts";
import { PolicyInput } from "../../../core/policies/policy.ts";
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
import { auditEvent } from "../../domain/managed/changes.ts";
import { findCreated } from "../../domain/managed/create-once.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { adopting, creatingManager, guardManaged } from "../../domain/managed/rules.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound, invalidField } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ApiId } from "../schemas.ts";
import { PolicyId, PolicyName } from "./schemas.ts";

/** Maximum number of attempts if other calls set and delete the policy in the meantime. */
const ATTEMPTS_MAX = 5;

const POLICY_BYTES_MAX = 262_144;

const Body = z.strictObject({
  apiId: ApiId,
  name: PolicyName,
  uid: z
    .string()
    .min(1)
    .max(253)
    .describe(
      "The manifest's uid. Generations are compared only within one uid, because a manifest that is created again starts at 1.",
    )
    .meta({ examples: ["5f1c6f0e-6f0b-4a63-9f5c-3d7b7f0f3a52"] }),
  generation: z
    .int()
    .min(1)
    .describe("Generation of the manifest.")
    .meta({ examples: [3] }),
  policy: PolicyInput.describe("The compiled policy, at most 256 KiB of JSON."),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  policyId: PolicyId,
  version: z
    .int()
    .describe("Version, which increases with every change of the stored policy.")
    .meta({ examples: [12] }),
});
type Data = z.output<typeof Data>;

const required = { updateApi: onApi("update_api") };

export const setPolicy = defineProcedure({
  path: "policies.setPolicy",
  effect: "change",
  summary: "Store a compiled policy",
  description:
    "Sidecars enforce this policy. Its API and its name identify it: setting it again replaces it and keeps its id. Setting the stored policy again changes nothing. The id of a managed policy follows from the workspace and the manager.",
  permissions: required,
  errors: ["api_not_found", "stale_policy_generation", "managed_by_manifest", "managed_exists"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const { apiId, name } = body;
  validate(body);
  return inTransaction(deps, async (tx) => {
    const api = await shareLockApi(tx, { workspaceId, apiId });
    if (api === undefined) throw apiNotFound(apiId);
    call.require(required.updateApi, apiId);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const current = await lockPolicyByName(tx, { workspaceId, apiId, name });
      const stored = current === undefined ? await create(tx, call) : await change(tx, call, current);
      if (stored !== undefined) return stored;
    }
    throw new Error(`a policy could not be set in ${ATTEMPTS_MAX} attempts`);
  });
}

/** Validates rules that the schema cannot express. Throws PublicError `invalid_input`, because a sidecar could not use such a policy. */
function validate({ apiId, policy }: Body): void {
  const bytes = Buffer.byteLength(JSON.stringify(policy));
  if (bytes > POLICY_BYTES_MAX) {
    throw invalidField("body.policy", `expected at most ${POLICY_BYTES_MAX} bytes of JSON, got ${bytes}`);
  }
  if (policy.apiId !== apiId) throw invalidField("body.policy.apiId", "expected the same id as body.apiId");
  const [problem] = checkPolicy(policy);
  if (problem !== undefined) throw invalidField(`body.policy.${problem.location}`, problem.message);
}

/** Creates a policy. Returns `undefined` if another transaction has just created a policy with this name. */
async function create(tx: PoolClient, call: Call<Body>): Promise<Data | undefined> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const { apiId, name, uid, generation, policy } = body;
  const manager = creatingManager(call);
  // A manager has at most one policy. A repeated call must succeed, so the response contains the id of the existing policy.
  const own = await findCreated(tx, call, "policy");
  if (own !== undefined) return { policyId: own.id, version: own.version };
  const otherId = makeId("policy", deps.randomBytes(16));
  const id = manager === null ? otherId : policyIdOf({ workspaceId, manager });
  const version = manager === null ? 1 : await freePolicyId(tx, { workspaceId, policyId: id, otherId });
  const createdAt = deps.nowMs();
  const values = { id, workspaceId, apiId, name, uid, generation, version, policy, manager, createdAt };
  if (!(await insertPolicy(tx, values))) return undefined;
  await insertAudit(tx, call, [policyEvent(call, id, "Created")]);
  return { policyId: id, version };
}

async function change(tx: PoolClient, call: Call<Body>, current: PolicyRow): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const { uid, generation, policy } = body;
  const { id: policyId } = current;
  const manager = guardManaged(call, MANAGED.policy, current);
  // The manager determines the id. A stored policy may have another id if it was adopted, or if an api-server of an earlier release created
  // it.
  const id = manager === null ? policyId : policyIdOf({ workspaceId, manager });
  if (current.uid === uid && generation < current.generation) {
    throw new PublicError(
      "stale_policy_generation",
      `Generation ${current.generation} of the policy ${policyId} is already stored; generation ${generation} is older.`,
    );
  }
  const isSame = current.uid === uid && current.generation === generation && isDeepStrictEqual(current.policy, policy);
  if (isSame && manager === current.manager && id === policyId) return { policyId, version: current.version };
  const stored = await adopting(call, MANAGED.policy, async () => {
    if (isSame) {
      await updatePolicyManager(tx, { workspaceId, policyId, manager });
      return current;
    }
    const updatedAt = deps.nowMs();
    return await updatePolicy(tx, { workspaceId, policyId, uid, generation, policy, manager, updatedAt });
  });
  const { version } = id === policyId ? stored : await rename(tx, call, { workspaceId, policyId, id });
  const before = { ...membersOf(current.policy), generation: current.generation, manager: current.manager };
  const changed = changeOf(before, { ...membersOf(policy), generation, manager });
  await insertAudit(tx, call, [{ ...policyEvent(call, id, "Updated"), ...changed }]);
  return { policyId: id, version };
}

/** Returns the members of a policy for the audit log; a policy contains no secret. */
const membersOf = (policy: unknown): Readonly<Record<string, unknown>> =>
  typeof policy === "object" && policy !== null ? { ...policy } : {};

/** Changes the id of a policy to the one that is derived from its manager, which has no other policy. */
async function rename(
  tx: PoolClient,
  { deps }: Call<Body>,
  policy: { workspaceId: string; policyId: string; id: string },
): Promise<{ readonly version: number }> {
  const { workspaceId, id } = policy;
  const otherId = makeId("policy", deps.randomBytes(16));
  const versionMin = await freePolicyId(tx, { workspaceId, policyId: id, otherId });
  return await updatePolicyId(tx, { ...policy, versionMin });
}

const policyEvent = ({ body }: Call<Body>, id: string, done: "Created" | "Updated"): AuditEvent =>
  auditEvent(
    MANAGED.policy,
    { id, name: body.name, api_id: body.apiId },
    done,
    `${done} policy ${id} of API ${body.apiId}`,
  );
