import * as z from "zod";
import { identityNotFound } from "../../domain/refusals/not-found.ts";
import { onIdentity } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { findIdentity } from "../../store/identities.ts";
import { listRatelimitsOfIdentity } from "../../store/ratelimits.ts";
import { toIdentityOut } from "../key-reply.ts";
import { IdentityOut } from "../schemas.ts";
import { IdentityName } from "./schemas.ts";

const Body = z.strictObject({ identity: IdentityName });
type Body = z.output<typeof Body>;

const needed = { readIdentity: onIdentity("read_identity") };

export const getIdentity = defineProcedure({
  path: "identities.getIdentity",
  effect: "read",
  summary: "Read an identity",
  description: "Returns an identity with its data and its limits.",
  permissions: needed,
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
}: Call<Body, typeof needed>): Promise<z.input<typeof IdentityOut>> {
  const { workspaceId } = caller;
  const identity = await findIdentity(deps.db, { workspaceId, identity: body.identity });
  if (identity === undefined) throw identityNotFound(body.identity);
  require(needed.readIdentity, identity.id);
  return toIdentityOut(identity, await listRatelimitsOfIdentity(deps.db, { workspaceId, identityId: identity.id }));
}
