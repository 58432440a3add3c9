import * as z from "zod";
import { deleteIdentity as remove } from "../../domain/identities/delete-identity.ts";
import { onIdentities } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty, IdentityName } from "../schemas.ts";

const Body = z.strictObject({ identity: IdentityName });
type Body = z.output<typeof Body>;

const required = { deleteIdentity: onIdentities("delete_identity") };

export const deleteIdentity = defineProcedure({
  path: "identities.deleteIdentity",
  effect: "change",
  summary: "Delete an identity",
  description:
    "Keys of a deleted identity remain valid, without the identity and its limits. Its externalId can be reused immediately, but a new identity does not get the keys.",
  permissions: required,
  errors: ["identity_not_found"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  call.require(required.deleteIdentity);
  await remove(call, call.body.identity);
  return {};
}
