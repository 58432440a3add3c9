import type { PoolClient } from "pg";
import { makeId } from "../../../core/ids.ts";
import type { AuditEvent, AuditedCall } from "../../db/audit.ts";
import { findIdentityIdByExternalId, insertIdentity, type Json } from "../../db/identities.ts";

/** Maximum number of attempts. Several are needed if the identity is deleted between two steps of a call. */
const ATTEMPTS_MAX = 5;

/**
 * Returns the id of the live identity with this external id. Creates a missing identity, and then also returns the audit event. Concurrent
 * callers with the same external id get the same identity.
 */
export async function ensureIdentity(
  tx: PoolClient,
  { caller, deps }: Pick<AuditedCall, "caller" | "deps">,
  externalId: string,
): Promise<{ identityId: string; events: AuditEvent[] }> {
  const { workspaceId } = caller;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const known = await findIdentityIdByExternalId(tx, { workspaceId, externalId });
    if (known !== undefined) return { identityId: known, events: [] };
    const id = makeId("identity", deps.randomBytes(16));
    const created = await insertIdentity(tx, { id, workspaceId, externalId, meta: null, createdAt: deps.nowMs() });
    if (created) return { identityId: id, events: [identityCreated({ id, externalId })] };
  }
  throw new Error(`an identity could not be made in ${ATTEMPTS_MAX} attempts`);
}

export const identityCreated = ({ id, externalId }: { id: string; externalId: string }): AuditEvent => ({
  event: "identity.create",
  description: `Created identity ${id}`,
  targets: [{ type: "identity", id, name: externalId }],
});

export const identityUpdated = ({ id, externalId }: { id: string; externalId: string }): AuditEvent => ({
  event: "identity.update",
  description: `Updated identity ${id}`,
  targets: [{ type: "identity", id, name: externalId }],
});

export const identityDeleted = ({ id, externalId }: { id: string; externalId: string }): AuditEvent => ({
  event: "identity.delete",
  description: `Deleted identity ${id}`,
  targets: [{ type: "identity", id, name: externalId }],
});

/** Stores empty meta as `null`, because responses do not distinguish between empty and missing meta. */
export const storedMeta = (meta: Json): Json | null => (Object.keys(meta).length === 0 ? null : meta);
