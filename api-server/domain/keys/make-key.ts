import type { PoolClient } from "pg";
import { type CreditsState, checkRefill } from "../../../core/credits/credits.ts";
import { PublicError } from "../../../core/errors.ts";
import { utcDate } from "../../../core/utc-date.ts";
import { isUniqueViolation } from "../../../postgres/failures.ts";
import { type ApiRow, findApi } from "../../db/apis.ts";
import { type AuditEvent, insertAudit } from "../../db/audit.ts";
import { insertKey } from "../../db/key-changes.ts";
import { insertKeySecret } from "../../db/key-secrets.ts";
import { findKeyIdByManager } from "../../db/keys.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { KeyVault } from "../../keys/key-vault.ts";
import type { Actor } from "../actor.ts";
import type { ChangeDeps, VaultDeps } from "../deps.ts";
import { ensureIdentity } from "../identities/identities.ts";
import { creatingManager } from "../managed/rules.ts";
import { ensurePermissions, ensureRoles, getRolesByName, type NamedPart } from "../permissions/permission-links.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { newRatelimits, type RequestedRatelimit } from "../ratelimits/new-ratelimits.ts";
import { checkMeta } from "../refusals/check-meta.ts";
import { apiNotFound, invalidField } from "../refusals/refusals.ts";
import { toCreditRow } from "./credits.ts";
import { requireKeyEncryption } from "./key-encryption.ts";
import { connectedToKey, keyCreated } from "./key-events.ts";
import { drawKey } from "./new-key.ts";

/** A requested key. The prefix and the length default to those of the API. */
export interface KeyToMake {
  readonly apiId: string;
  readonly prefix?: string | undefined;
  readonly byteLength?: number | undefined;
  readonly name?: string | undefined;
  readonly externalId?: string | undefined;
  /** Owner of the key in v1. */
  readonly ownerId?: string | undefined;
  /** Environment of the key in v1. */
  readonly environment?: string | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  /** Names of roles. In v1, a missing role is created; in v2, a missing role is an error. */
  readonly roles?: readonly string[] | undefined;
  /** Slugs of permissions. Missing permissions are created. */
  readonly permissions?: readonly string[] | undefined;
  /** Unix ms. */
  readonly expires?: number | undefined;
  /** Credits of the key. Default: unlimited. */
  readonly credits?: CreditsState | undefined;
  readonly ratelimits?: readonly RequestedRatelimit[] | undefined;
  readonly enabled: boolean;
  readonly recoverable: boolean;
}

export interface MadeKey {
  readonly keyId: string;
  /** The secret key string. */
  readonly key: string;
}

type Making<Required extends RequiredPermission> = Actor<Required, ChangeDeps & VaultDeps>;

/** Permissions that the root key needs on the API. */
interface MakeNeeds<Required extends RequiredPermission> {
  readonly createKey: Required;
  /** Permission that is required to create a recoverable key. */
  readonly encryptKey: Required;
  /** Permission that v1 requires to create a missing role. In v2, creating a key never creates roles. */
  readonly createRole?: Required;
  /** Permission that v1 requires to create a missing permission. In v2, the permission to create the key suffices. */
  readonly createPermission?: Required;
}

/**
 * Creates a key in one transaction with the identity and the permissions that it refers to, if these do not exist yet.
 * @throws PublicError, checked in this order: 404 for the API, 403, 412 for encryption, 400, 404 for a role, 409 `managed_exists`.
 */
export async function makeKey<Required extends RequiredPermission>(
  actor: Making<Required>,
  requested: KeyToMake,
  required: MakeNeeds<Required>,
): Promise<MadeKey> {
  const { caller, deps } = actor;
  const { apiId } = requested;
  const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  actor.require(required.createKey, apiId);
  const vault = requested.recoverable
    ? requireKeyEncryption(actor, required.encryptKey, { apiId, isEnabled: api.key_encryption })
    : undefined;
  const fault = requested.credits === undefined ? undefined : checkRefill(requested.credits);
  if (fault !== undefined) throw invalidField("body.credits.refill", fault);
  checkMeta(requested.meta);
  try {
    return await inTransaction(deps, (tx) => insertEverything(tx, actor, requested, { api, vault, needed: required }));
  } catch (error) {
    // The same manager has concurrently created a key with this name. The check is repeated because its error contains the id of that key.
    if (!isUniqueViolation(error, "keys_manager")) throw error;
    // A joined transaction is now aborted, so the other key cannot be read.
    if (deps.joined !== undefined) {
      const detail = `A concurrent call has created a key with this name for ${creatingManager(actor)}.`;
      throw new PublicError("managed_exists", detail, { cause: error });
    }
    await refuseSecondOfManager(deps.db, actor, requested.name);
    throw error;
  }
}

async function insertEverything<Required extends RequiredPermission>(
  tx: PoolClient,
  actor: Making<Required>,
  requested: KeyToMake,
  {
    api,
    vault,
    needed: required,
  }: { readonly api: ApiRow; readonly vault: KeyVault | undefined; readonly needed: MakeNeeds<Required> },
): Promise<MadeKey> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const { roles, events: madeRoles } = await findRoles(tx, actor, requested.roles ?? [], required.createRole);
  await refuseSecondOfManager(tx, actor, requested.name);
  const newSlugs = required.createPermission === undefined ? {} : { newSlugsNeed: required.createPermission };
  const permissions = await ensurePermissions(tx, actor, requested.permissions ?? [], newSlugs);
  const identity =
    requested.externalId === undefined ? undefined : await ensureIdentity(tx, actor, requested.externalId);

  const { keyId, key, hash, start } = drawKey(deps, api, requested);
  const createdAt = deps.nowMs();
  const credits = requested.credits === undefined ? undefined : toCreditRow(requested.credits);
  await insertKey(tx, {
    id: keyId,
    workspaceId,
    apiId: api.id,
    hash,
    start,
    name: requested.name ?? null,
    identityId: identity?.identityId ?? null,
    ownerId: requested.ownerId ?? null,
    environment: requested.environment ?? null,
    meta: requested.meta === undefined || Object.keys(requested.meta).length === 0 ? null : requested.meta,
    enabled: requested.enabled,
    expiresAt: requested.expires ?? null,
    manager: creatingManager(actor),
    createdAt,
    credits:
      credits === undefined
        ? undefined
        : {
            granted: credits.remaining,
            refillAmount: credits.refillAmount,
            refillDay: credits.refillDay,
            // The first refill is on the next due date after today, even if today is a due date.
            lastRefillOn: utcDate(createdAt),
            lastRefillAt: credits.refillAmount === null ? null : createdAt,
          },
    permissionIds: permissions.permissions.map(({ id }) => id),
    roleIds: roles.map(({ id }) => id),
    ratelimits: newRatelimits(deps, requested.ratelimits ?? []),
  });
  if (vault !== undefined) {
    const owner = { workspaceId, keyId };
    await insertKeySecret(tx, { ...owner, sealed: vault.seal(owner, key), createdAt });
  }
  await insertAudit(tx, actor, [
    ...(identity?.events ?? []),
    ...madeRoles,
    ...permissions.events,
    ...permissions.permissions.map(({ id, slug }) => connectedToKey(keyId, { type: "permission", id, name: slug })),
    ...roles.map(({ id, name }) => connectedToKey(keyId, { type: "role", id, name })),
    keyCreated({ id: keyId, name: requested.name }, { id: api.id, name: api.name }),
  ]);
  return { keyId, key };
}

/**
 * Returns the distinct roles with these names. Throws PublicError 404 for a missing role, or 403 if the root key is not allowed to create
 * it.
 */
async function findRoles<Required extends RequiredPermission>(
  tx: PoolClient,
  actor: Making<Required>,
  names: readonly string[],
  createRole: Required | undefined,
): Promise<{ readonly roles: readonly NamedPart[]; readonly events: readonly AuditEvent[] }> {
  if (createRole === undefined) return { roles: await getRolesByName(tx, actor.caller.workspaceId, names), events: [] };
  const { roles, events } = await ensureRoles(tx, actor, names, { newNamesNeed: createRole });
  return { roles: [...new Map([...roles.values()].map((role) => [role.id, role])).values()], events: [...events] };
}

/**
 * Throws PublicError 409 `managed_exists` if the manager already has a key with this name. A manager's keys are distinguished by name. The
 * existing key cannot be returned instead, because its string is not stored.
 */
async function refuseSecondOfManager(
  db: Pick<PoolClient, "query">,
  actor: Actor,
  name: string | undefined,
): Promise<void> {
  const manager = creatingManager(actor);
  if (manager === null) return;
  const { workspaceId } = actor.caller;
  const existing = await findKeyIdByManager(db, { workspaceId, manager, name: name ?? null });
  if (existing === undefined) return;
  const which = name === undefined ? "a key without a name" : "a key with this name";
  throw new PublicError("managed_exists", `${manager} already has ${which}: ${existing}.`);
}
