import * as z from "zod";
import { readStoredPolicy, StoredPolicy } from "../../../core/policies/stored-policy.ts";
import { findPolicy, findPolicyByName, type PolicyRow } from "../../db/policies.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { invalidField, policyNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ApiId } from "../schemas.ts";
import { describePolicy, PolicyHead, PolicyId, PolicyName } from "./schemas.ts";

const Body = z
  .strictObject({
    policyId: PolicyId.optional().describe("Id of the policy; alternative: `apiId` and `name`."),
    apiId: ApiId.optional(),
    name: PolicyName.optional(),
  })
  .meta({ examples: [{ apiId: "api_9xKp3Rt6VwY1zAbC", name: "main/shop/orders" }] });
type Body = z.output<typeof Body>;

const Data = PolicyHead.extend({
  policy: StoredPolicy.optional().describe(
    "The policy as it was set, with its defaults. Omitted when a later release stored it in a format that this one does not know.",
  ),
});
type Data = z.input<typeof Data>;

const required = { readApi: onApi("read_api") };

export const getPolicy = defineProcedure({
  path: "policies.getPolicy",
  effect: "read",
  summary: "Read a policy",
  description: "By id, or by its API and name; with the reports of the sidecars that enforce it.",
  permissions: required,
  errors: ["policy_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  const row = await findNamed(call);
  call.require(required.readApi, row.api_id);
  const { policy } = readStoredPolicy(row.policy);
  return { ...(await describePolicy(deps, workspaceId, row)), ...(policy === undefined ? {} : { policy }) };
}

/** Returns the named policy. Throws PublicError 400 unless the policy is named in exactly one of the two ways, 404 if it does not exist. */
async function findNamed({ body, caller, deps }: Call<Body>): Promise<PolicyRow> {
  const { policyId, apiId, name } = body;
  const { workspaceId } = caller;
  if (policyId !== undefined && apiId === undefined && name === undefined) {
    const row = await findPolicy(deps.db, { workspaceId, policyId });
    if (row === undefined) throw policyNotFound(policyId);
    return row;
  }
  if (policyId === undefined && apiId !== undefined && name !== undefined) {
    const row = await findPolicyByName(deps.db, { workspaceId, apiId, name });
    if (row === undefined) throw policyNotFound(`${name} of API ${apiId}`);
    return row;
  }
  throw invalidField("body", "expected policyId alone, or apiId and name");
}
