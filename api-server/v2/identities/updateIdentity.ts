import * as z from "zod";
import { identityUpdated } from "../../domain/identities/identities.ts";
import { checkDistinctNames, limitsChanged, planLimits } from "../../domain/identities/identity-limits.ts";
import { newRatelimits } from "../../domain/ratelimits/new-ratelimits.ts";
import { checkMeta } from "../../domain/refusals/check-meta.ts";
import { identityNotFound } from "../../domain/refusals/not-found.ts";
import { onIdentities } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { lockIdentity, updateIdentity as updateIdentityRow } from "../../store/identities.ts";
import { listRatelimitsOfIdentity, replaceIdentityRatelimits } from "../../store/ratelimits.ts";
import { inTransaction } from "../../store/transaction.ts";
import { toIdentityOut } from "../key-reply.ts";
import { IdentityOut, Meta, RatelimitsIn } from "../schemas.ts";
import { IdentityName } from "./schemas.ts";

const Body = z.strictObject({
  identity: IdentityName,
  meta: Meta.optional().describe("Replaces all of it; `{}` removes it; omitted: it stays."),
  ratelimits: RatelimitsIn.optional().describe(
    "Replaces all of them; a limit whose name stays keeps its id; `[]` removes all; omitted: they stay.",
  ),
});
type Body = z.output<typeof Body>;

const needed = { updateIdentity: onIdentities("update_identity") };

export const updateIdentity = defineProcedure({
  path: "identities.updateIdentity",
  effect: "change",
  summary: "Change an identity",
  description:
    "Replaces its data, its limits, or both, and returns the changed identity. The externalId cannot be changed.",
  permissions: needed,
  errors: ["identity_not_found"],
  body: Body,
  data: IdentityOut,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<IdentityOut> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(needed.updateIdentity);
  checkDistinctNames(body.ratelimits ?? []);
  checkMeta(body.meta);
  return inTransaction(deps, async (tx) => {
    // Locked before anything is read, so that of two concurrent calls the later one sees the result of the other.
    const row = await lockIdentity(tx, { workspaceId, identity: body.identity });
    if (row === undefined) throw identityNotFound(body.identity);
    const { id: identityId, external_id: externalId } = row;
    const updatedAt = deps.nowMs();
    const meta = body.meta === undefined ? row.meta : Object.keys(body.meta).length === 0 ? null : body.meta;
    await updateIdentityRow(tx, { workspaceId, identityId, meta, updatedAt });

    const current = await listRatelimitsOfIdentity(tx, { workspaceId, identityId });
    const events = [identityUpdated({ id: identityId, externalId })];
    if (body.ratelimits === undefined) {
      await insertAudit(tx, call, events);
      return toIdentityOut({ ...row, meta }, current);
    }
    const wanted = newRatelimits(deps, body.ratelimits);
    await replaceIdentityRatelimits(tx, { workspaceId, identityId, createdAt: updatedAt }, wanted);
    events.push(...limitsChanged({ id: identityId, externalId }, planLimits(current, wanted)));
    await insertAudit(tx, call, events);
    return toIdentityOut({ ...row, meta }, await listRatelimitsOfIdentity(tx, { workspaceId, identityId }));
  });
}
