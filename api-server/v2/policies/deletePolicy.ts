import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { deleteManaged, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { PolicyId } from "./schemas.ts";

const Body = z.strictObject({ policyId: PolicyId });
type Body = z.output<typeof Body>;

const required = { updateApi: onApi("update_api") };

export const deletePolicy = defineProcedure({
  path: "policies.deletePolicy",
  effect: "change",
  summary: "Delete a policy",
  description:
    "Sidecars that enforce it keep the last version that they have: a gate never opens because its policy was deleted.",
  permissions: required,
  errors: ["policy_not_found", "managed_by_manifest"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { policyId } = body;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const policy = await lockManaged(tx, MANAGED.policy, { workspaceId, which: policyId });
    call.require(required.updateApi, policy.api_id);
    await deleteManaged(tx, call, MANAGED.policy, policy);
  });
  return {};
}
