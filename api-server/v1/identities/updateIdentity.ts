import * as z from "zod";
import { updateIdentity as update } from "../../domain/identities/update-identity.ts";
import { onIdentities } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Meta } from "../schemas.ts";
import {
  checkRepeatedNames,
  Environment,
  ExternalId,
  IdentityId,
  IdentityResponse,
  RatelimitItems,
  toIdentityResponse,
} from "./schemas.ts";
import { checkIdentitySelector, selectIdentity } from "./select-identity.ts";

const Body = z.object({
  identityId: IdentityId.optional(),
  externalId: ExternalId.optional(),
  environment: Environment.describe("Accepted for compatibility; has no effect."),
  meta: Meta.optional().describe(
    "New metadata. It replaces all existing metadata; `{}` removes it. If omitted, metadata does not change.",
  ),
  ratelimits: RatelimitItems.optional().describe(
    "New limits. They replace all existing limits; a limit with an existing name keeps its id, and `[]` removes all. If omitted, limits do not change.",
  ),
});
type Body = z.output<typeof Body>;

const required = { updateIdentity: onIdentities("update_identity") };

export const updateIdentity = defineV1Procedure({
  path: "identities.updateIdentity",
  method: "POST",
  successor: "identities.updateIdentity",
  effect: "change",
  summary: "Change an identity",
  description:
    "Replaces the identity's metadata, its limits, or both, and returns the changed identity. The `externalId` selects the identity and cannot be changed.",
  permissions: required,
  errors: ["identity_not_found", "ratelimit_name_repeated"],
  input: Body,
  check: checkIdentitySelector,
  response: IdentityResponse,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<IdentityResponse> {
  const { meta, ratelimits } = call.body;
  call.require(required.updateIdentity);
  checkRepeatedNames(ratelimits ?? []);
  const identity = await selectIdentity(call, call.body);
  const updated = await update(call, { identity, meta, ratelimits });
  return toIdentityResponse(updated.row, updated.ratelimits);
}
