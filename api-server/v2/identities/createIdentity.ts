import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { identityCreated } from "../../domain/identities/identities.ts";
import { checkDistinctNames, limitsChanged } from "../../domain/identities/identity-limits.ts";
import { newRatelimits } from "../../domain/ratelimits/new-ratelimits.ts";
import { checkMeta } from "../../domain/refusals/check-meta.ts";
import { onIdentities } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { insertIdentity } from "../../store/identities.ts";
import { insertIdentityRatelimits } from "../../store/ratelimits.ts";
import { inTransaction } from "../../store/transaction.ts";
import { ExternalId, Meta, RatelimitsIn } from "../schemas.ts";

/** Unknown members are ignored here. */
const Body = z.object({
  externalId: ExternalId,
  meta: Meta.optional(),
  ratelimits: RatelimitsIn.optional().describe("Limits that all keys of the identity share; names are distinct."),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  identityId: z
    .string()
    .describe("Id of the identity.")
    .meta({ examples: ["id_7nPq0Rs3Tu6Vw9Xy"] }),
});

const needed = { createIdentity: onIdentities("create_identity") };

export const createIdentity = defineProcedure({
  path: "identities.createIdentity",
  effect: "change",
  summary: "Create an identity",
  description: "An identity is the owner of keys: a user, an organisation or a machine. Its keys share its limits.",
  permissions: needed,
  errors: ["identity_already_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Data>> {
  const { body, caller, deps } = call;
  const { externalId, meta, ratelimits = [] } = body;
  const { workspaceId } = caller;
  call.require(needed.createIdentity);
  checkMeta(meta);
  checkDistinctNames(ratelimits);
  return inTransaction(deps, async (tx) => {
    const identityId = makeId("identity", deps.randomBytes(16));
    const createdAt = deps.nowMs();
    const stored = meta === undefined || Object.keys(meta).length === 0 ? null : meta;
    if (!(await insertIdentity(tx, { id: identityId, workspaceId, externalId, meta: stored, createdAt }))) {
      throw new PublicError(
        "identity_already_exists",
        `There is an identity with the externalId ${externalId} already.`,
      );
    }
    const limits = newRatelimits(deps, ratelimits);
    if (limits.length > 0) await insertIdentityRatelimits(tx, { workspaceId, identityId, createdAt }, limits);
    await insertAudit(tx, call, [
      identityCreated({ id: identityId, externalId }),
      ...limitsChanged({ id: identityId, externalId }, { created: limits }),
    ]);
    return { identityId };
  });
}
