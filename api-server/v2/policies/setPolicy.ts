import * as z from "zod";
import { PolicyInput } from "../../../core/policies/policy.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { setPolicy as set } from "../../domain/policies/set-policy.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ApiId } from "../schemas.ts";
import { PolicyId, PolicyName } from "./schemas.ts";

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

function handle(call: Call<Body, typeof required>): Promise<Data> {
  return set(call, required.updateApi, call.body);
}
