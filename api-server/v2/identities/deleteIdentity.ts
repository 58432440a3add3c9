import * as z from "zod";
import { identityDeleted } from "../../domain/identities/identities.ts";
import { limitsChanged } from "../../domain/identities/identity-limits.ts";
import { identityNotFound } from "../../domain/refusals/not-found.ts";
import { onIdentities } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { deleteIdentity as deleteIdentityRow, lockIdentity } from "../../store/identities.ts";
import { listRatelimitsOfIdentity, replaceIdentityRatelimits } from "../../store/ratelimits.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Empty } from "../schemas.ts";
import { IdentityName } from "./schemas.ts";

const Body = z.strictObject({ identity: IdentityName });
type Body = z.output<typeof Body>;

const needed = { deleteIdentity: onIdentities("delete_identity") };

export const deleteIdentity = defineProcedure({
  path: "identities.deleteIdentity",
  effect: "change",
  summary: "Delete an identity",
  description:
    "Its keys go on working, without the identity and its limits. The externalId is free at once; a new identity with it does not get the keys of the old one.",
  permissions: needed,
  errors: ["identity_not_found"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(needed.deleteIdentity);
  return inTransaction(deps, async (tx) => {
    const row = await lockIdentity(tx, { workspaceId, identity: body.identity });
    if (row === undefined) throw identityNotFound(body.identity);
    const { id: identityId, external_id: externalId } = row;
    const deletedAt = deps.nowMs();
    const deleted = await listRatelimitsOfIdentity(tx, { workspaceId, identityId });
    await replaceIdentityRatelimits(tx, { workspaceId, identityId, createdAt: deletedAt }, []);
    await deleteIdentityRow(tx, { workspaceId, identityId, deletedAt });
    const identity = { id: identityId, externalId };
    await insertAudit(tx, call, [identityDeleted(identity), ...limitsChanged(identity, { deleted })]);
    return {};
  });
}
