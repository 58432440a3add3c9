import * as z from "zod";
import { createIdentity as createNew } from "../../domain/identities/create-identity.ts";
import { onIdentities } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ExternalId, Meta, RatelimitsIn } from "../schemas.ts";

/** Body of the request; unknown members are ignored. */
const Body = z.object({
  externalId: ExternalId,
  meta: Meta.optional(),
  ratelimits: RatelimitsIn.optional().describe("Limits that all keys of the identity share. Names must be unique."),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  identityId: z
    .string()
    .describe("Id of the identity.")
    .meta({ examples: ["id_7nPq0Rs3Tu6Vw9Xy"] }),
});

const required = { createIdentity: onIdentities("create_identity") };

export const createIdentity = defineProcedure({
  path: "identities.createIdentity",
  effect: "change",
  summary: "Create an identity",
  description: "An identity owns keys: a user, an organization or a machine. Keys of an identity share its limits.",
  permissions: required,
  errors: ["identity_already_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Data>> {
  const { externalId, meta, ratelimits = [] } = call.body;
  call.require(required.createIdentity);
  return { identityId: await createNew(call, { externalId, meta, ratelimits }) };
}
