import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { insertAudit } from "../../db/audit.ts";
import { insertIdentity, type Json } from "../../db/identities.ts";
import { insertIdentityRatelimits } from "../../db/ratelimits.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { newRatelimits, type RequestedRatelimit } from "../ratelimits/new-ratelimits.ts";
import { checkMeta } from "../refusals/check-meta.ts";
import { identityCreated, storedMeta } from "./identities.ts";
import { checkDistinctNames, limitsChanged } from "./identity-limits.ts";

export interface RequestedIdentity {
  readonly externalId: string;
  readonly meta: Json | undefined;
  readonly ratelimits: readonly RequestedRatelimit[];
}

/**
 * Creates an identity with its limits and returns its id.
 * @throws PublicError 400 if the meta is too large or two limits have the same name; 409 if a live identity has the external id.
 */
export async function createIdentity(
  actor: Actor,
  { externalId, meta, ratelimits }: RequestedIdentity,
): Promise<string> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  checkMeta(meta);
  checkDistinctNames(ratelimits);
  return inTransaction(deps, async (tx) => {
    const identityId = makeId("identity", deps.randomBytes(16));
    const createdAt = deps.nowMs();
    const stored = meta === undefined ? null : storedMeta(meta);
    if (!(await insertIdentity(tx, { id: identityId, workspaceId, externalId, meta: stored, createdAt }))) {
      throw new PublicError("identity_already_exists", `An identity with the externalId ${externalId} already exists.`);
    }
    const limits = newRatelimits(deps, ratelimits);
    if (limits.length > 0) await insertIdentityRatelimits(tx, { workspaceId, identityId, createdAt }, limits);
    const identity = { id: identityId, externalId };
    await insertAudit(tx, actor, [identityCreated(identity), ...limitsChanged(identity, { created: limits })]);
    return identityId;
  });
}
