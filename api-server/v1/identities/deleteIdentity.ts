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
    "Its keys go on working, without the identity and its limits. The externalId is free at once; a new identity with it does not get the keys of the old one.",
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
