import * as z from "zod";
import { deleteIdentity as remove } from "../../domain/identities/delete-identity.ts";
import { onIdentity } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Empty } from "../schemas.ts";
import { IdentityId } from "./schemas.ts";
import { selectIdentity } from "./select-identity.ts";

const Body = z.object({ identityId: IdentityId });
type Body = z.output<typeof Body>;

const required = { deleteIdentity: onIdentity("delete_identity") };

export const deleteIdentity = defineV1Procedure({
  path: "identities.deleteIdentity",
  method: "POST",
  successor: "identities.deleteIdentity",
  effect: "change",
  summary: "Delete an identity",
  description:
    "Keys of a deleted identity remain valid, without the identity and its limits. Its externalId can be reused immediately, but a new identity does not get the keys.",
  permissions: required,
  errors: ["identity_not_found"],
  input: Body,
  response: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  call.require(required.deleteIdentity, call.body.identityId);
  await remove(call, await selectIdentity(call, call.body));
  return {};
}
