import * as z from "zod";
import { findIdentity } from "../../db/identities.ts";
import { listRatelimitsOfIdentity } from "../../db/ratelimits.ts";
import { onIdentity } from "../../domain/permissions/required-permissions.ts";
import { identityNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { toIdentityOut } from "../key-reply.ts";
import { IdentityName, IdentityOut } from "../schemas.ts";

const Body = z.strictObject({ identity: IdentityName });
type Body = z.output<typeof Body>;

const required = { readIdentity: onIdentity("read_identity") };

export const getIdentity = defineProcedure({
  path: "identities.getIdentity",
  effect: "read",
  summary: "Read an identity",
  description: "Returns an identity with its metadata and its limits.",
  permissions: required,
  errors: ["identity_not_found"],
  body: Body,
  data: IdentityOut,
  handle,
});

async function handle({
  body,
  caller,
  deps,
  require,
}: Call<Body, typeof required>): Promise<z.input<typeof IdentityOut>> {
  const { workspaceId } = caller;
  const identity = await findIdentity(deps.db, { workspaceId, identity: body.identity });
  if (identity === undefined) throw identityNotFound(body.identity);
  require(required.readIdentity, identity.id);
  return toIdentityOut(identity, await listRatelimitsOfIdentity(deps.db, { workspaceId, identityId: identity.id }));
}
