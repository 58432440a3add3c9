import * as z from "zod";
import { readStoredPolicy, StoredPolicy } from "../../../core/policies/stored-policy.ts";
import { findOwn } from "../../db/managed-objects.ts";
import { findPolicy, findPolicyByName, type PolicyRow } from "../../db/policies.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { invalidField, policyNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ManagerOfManifest } from "../managed/manifests.ts";
import { ApiId } from "../schemas.ts";
import { describePolicy, PolicyHead, PolicyId, PolicyName } from "./schemas.ts";

const Body = z
  .strictObject({
    policyId: PolicyId.optional().describe("Id of the policy. Alternatively, pass `apiId` and `name`, or `manager`."),
    apiId: ApiId.optional(),
    name: PolicyName.optional(),
    manager: ManagerOfManifest.optional().describe("Manager of the policy."),
  })
  .meta({ examples: [{ apiId: "api_9xKp3Rt6VwY1zAbC", name: "main/shop/orders" }] });
type Body = z.output<typeof Body>;

const Data = PolicyHead.extend({
  policy: StoredPolicy.optional().describe(
    "The stored policy, with defaults filled in. Omitted if a later release stored it in a format that this release does not know.",
  ),
});
type Data = z.input<typeof Data>;

const required = { readApi: onApi("read_api") };

export const getPolicy = defineProcedure({
  path: "policies.getPolicy",
  effect: "read",
  summary: "Read a policy",
  description:
    "Reads a policy by its id, by its API and name, or by its manager, with a summary of the reports of the gates that enforce it.",
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

/**
 * Returns the requested policy. Throws PublicError 400 unless the request identifies it in exactly one of the three ways, and 404 if it
 * does not exist.
 */
async function findNamed({ body, caller, deps }: Call<Body>): Promise<PolicyRow> {
  const { policyId, apiId, name, manager } = body;
  const { workspaceId } = caller;
  const ways = [policyId, manager, apiId ?? name].filter((way) => way !== undefined);
  if (ways.length !== 1 || (apiId === undefined) !== (name === undefined)) {
    throw invalidField("body", "expected policyId alone, manager alone, or apiId and name");
  }
  if (apiId !== undefined && name !== undefined) {
    const row = await findPolicyByName(deps.db, { workspaceId, apiId, name });
    if (row === undefined) throw policyNotFound(`${name} of API ${apiId}`);
    return row;
  }
  const id = manager === undefined ? policyId : (await findOwn(deps.db, "policy", { workspaceId, manager }))?.id;
  const row = id === undefined ? undefined : await findPolicy(deps.db, { workspaceId, policyId: id });
  if (row === undefined) throw policyNotFound(policyId ?? `of the manager ${manager}`);
  return row;
}
