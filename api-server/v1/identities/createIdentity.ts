import * as z from "zod";
import { createIdentity as create } from "../../domain/identities/create-identity.ts";
import { onIdentities } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Meta } from "../schemas.ts";
import { checkRepeatedNames, ExternalId, IdentityId, RatelimitItems } from "./schemas.ts";

const Body = z.object({
  externalId: ExternalId,
  meta: Meta.optional(),
  ratelimits: RatelimitItems.optional().describe("Limits that all keys of the identity share. Names must be unique."),
});
type Body = z.output<typeof Body>;

const ResponseBody = z.object({ identityId: IdentityId });

const required = { createIdentity: onIdentities("create_identity") };

export const createIdentity = defineV1Procedure({
  path: "identities.createIdentity",
  method: "POST",
  successor: "identities.createIdentity",
  effect: "change",
  summary: "Create an identity",
  description: "An identity owns keys: a user, an organization or a machine. Keys of an identity share its limits.",
  permissions: required,
  errors: ["identity_already_exists", "ratelimit_name_repeated"],
  input: Body,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { externalId, meta, ratelimits = [] } = call.body;
  call.require(required.createIdentity);
  checkRepeatedNames(ratelimits);
  const limits = ratelimits.map((one) => ({ ...one, autoApply: false }));
  return { identityId: await create(call, { externalId, meta, ratelimits: limits }) };
}
