import * as z from "zod";
import { updateIdentity as update } from "../../domain/identities/update-identity.ts";
import { onIdentities } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { toIdentityOut } from "../key-reply.ts";
import { IdentityName, IdentityOut, Meta, RatelimitsIn } from "../schemas.ts";

const Body = z.strictObject({
  identity: IdentityName,
  meta: Meta.optional().describe(
    "New metadata. It replaces all existing metadata; `{}` removes it. If omitted, metadata does not change.",
  ),
  ratelimits: RatelimitsIn.optional().describe(
    "New limits. They replace all existing limits; a limit with an existing name keeps its id, and `[]` removes all. If omitted, limits do not change.",
  ),
});
type Body = z.output<typeof Body>;

const required = { updateIdentity: onIdentities("update_identity") };

export const updateIdentity = defineProcedure({
  path: "identities.updateIdentity",
  effect: "change",
  summary: "Change an identity",
  description:
    "Replaces the identity's metadata, its limits, or both, and returns the changed identity. The externalId cannot be changed.",
  permissions: required,
  errors: ["identity_not_found"],
  body: Body,
  data: IdentityOut,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<IdentityOut> {
  const { identity, meta, ratelimits } = call.body;
  call.require(required.updateIdentity);
  const updated = await update(call, { identity, meta, ratelimits });
  return toIdentityOut(updated.row, updated.ratelimits);
}
