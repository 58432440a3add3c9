import * as z from "zod";
import { deleteOrRelease } from "../../domain/managed/rules.ts";
import { policyNotFound } from "../../domain/not-found.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { deletePolicy as deletePolicyRow, lockPolicy, updatePolicyManager } from "../../store/policies.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Empty } from "../schemas.ts";
import { PolicyId } from "./schemas.ts";

const Body = z.strictObject({ policyId: PolicyId });
type Body = z.output<typeof Body>;

const needed = { updateApi: onApi("update_api") };

export const deletePolicy = defineProcedure({
  path: "policies.deletePolicy",
  effect: "change",
  summary: "Delete a policy",
  description:
    "Sidecars that enforce it go on with the last version that they have: a gate never opens because its policy is gone.",
  permissions: needed,
  errors: ["policy_not_found", "managed_elsewhere"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { policyId } = body;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const policy = await lockPolicy(tx, { workspaceId, policyId });
    if (policy === undefined) throw policyNotFound(policyId);
    call.require(needed.updateApi, policy.api_id);
    const targets = [
      { type: "policy" as const, id: policyId, name: policy.name },
      { type: "api" as const, id: policy.api_id },
    ];
    await deleteOrRelease(call, policy, `The policy ${policyId}`, {
      remove: async () => {
        await deletePolicyRow(tx, { workspaceId, policyId, deletedAt: deps.nowMs() });
        await insertAudit(tx, call, [{ event: "policy.delete", description: `Deleted policy ${policyId}`, targets }]);
      },
      release: async () => {
        await updatePolicyManager(tx, { workspaceId, policyId, manager: null });
        await insertAudit(tx, call, [{ event: "policy.update", description: `Released policy ${policyId}`, targets }]);
      },
    });
  });
  return {};
}
