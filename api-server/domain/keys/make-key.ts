import type { PoolClient } from "pg";
import { type CreditsState, checkRefill } from "../../../core/credits/credits.ts";
import { PublicError } from "../../../core/errors.ts";
import { utcDate } from "../../../core/utc-date.ts";
import type { KeyVault } from "../../key-vault.ts";
import type { NeededPermission } from "../../needed-permissions.ts";
import type { Call, CallNeeding } from "../../procedure.ts";
import { type ApiRow, findApi } from "../../store/apis.ts";
import { type AuditEvent, insertAudit } from "../../store/audit.ts";
import { insertKey } from "../../store/key-changes.ts";
import { insertKeySecret } from "../../store/key-secrets.ts";
import { findKeyIdByManager } from "../../store/keys.ts";
import { inTransaction } from "../../store/transaction.ts";
import { isUniqueViolation } from "../../store/unique-violation.ts";
import { ensureIdentity } from "../identities/identities.ts";
import { creatingManager } from "../managed/rules.ts";
import { ensurePermissions, ensureRoles, getRolesByName, type NamedPart } from "../permissions/permission-links.ts";
import { newRatelimits, type WantedRatelimit } from "../ratelimits/new-ratelimits.ts";
import { checkMeta } from "../refusals/check-meta.ts";
import { invalidField } from "../refusals/invalid-field.ts";
import { apiNotFound } from "../refusals/not-found.ts";
import { toCreditRow } from "./credits.ts";
import { requireKeyEncryption } from "./key-encryption.ts";
import { connectedToKey, keyCreated } from "./key-events.ts";
import { drawKey } from "./new-key.ts";

/** A key as it is asked for. Its prefix and length are the API's when they are left out. */
export interface KeyToMake {
  readonly apiId: string;
  readonly prefix?: string | undefined;
  readonly byteLength?: number | undefined;
  readonly name?: string | undefined;
  readonly externalId?: string | undefined;
  /** What v1 stores as the owner. */
  readonly ownerId?: string | undefined;
  /** As v1 has it. */
  readonly environment?: string | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  /** Names; they must exist, unless `needed` says what creating one needs. */
  readonly roles?: readonly string[] | undefined;
  /** Slugs; those that do not exist are created. */
  readonly permissions?: readonly string[] | undefined;
  /** Unix ms. */
  readonly expires?: number | undefined;
  /** Unlimited when left out. */
  readonly credits?: CreditsState | undefined;
  readonly ratelimits?: readonly WantedRatelimit[] | undefined;
  readonly enabled: boolean;
  readonly recoverable: boolean;
}

export interface MadeKey {
  readonly keyId: string;
  /** The secret. */
  readonly key: string;
}

/** The permissions that the root key needs on the API. */
interface MakeNeeds<Needed extends NeededPermission> {
  readonly createKey: Needed;
  /** For a recoverable key. */
  readonly encryptKey: Needed;
  /** Of v1: for a role that is new. In v2 roles are never created here. */
  readonly createRole?: Needed;
  /** Of v1: for a permission that is new. In v2 creating the key is enough. */
  readonly createPermission?: Needed;
}

/**
 * Creates a key, with the identity and the permissions that it names and that do not exist yet; all or nothing.
 * @throws PublicError 404 API, 403, 412 encryption, 400, 404 role, 409 `managed_exists`, in this order.
 */
export async function makeKey<Needed extends NeededPermission>(
  call: CallNeeding<unknown, Needed>,
  wanted: KeyToMake,
  needed: MakeNeeds<Needed>,
): Promise<MadeKey> {
  const { caller, deps } = call;
  const { apiId } = wanted;
  const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  call.require(needed.createKey, apiId);
  const vault = wanted.recoverable
    ? requireKeyEncryption(call, needed.encryptKey, { apiId, isEnabled: api.key_encryption })
    : undefined;
  const fault = wanted.credits === undefined ? undefined : checkRefill(wanted.credits);
  if (fault !== undefined) throw invalidField("body.credits.refill", fault);
  checkMeta(wanted.meta);
  try {
    return await inTransaction(deps, (tx) => insertEverything(tx, call, wanted, { api, vault, needed }));
  } catch (error) {
    // The same manager created a key with this name concurrently; now it can be found and named.
    if (!isUniqueViolation(error, "keys_manager")) throw error;
    await refuseSecondOfManager(deps.db, call, wanted.name);
    throw error;
  }
}

async function insertEverything<Needed extends NeededPermission>(
  tx: PoolClient,
  call: CallNeeding<unknown, Needed>,
  wanted: KeyToMake,
  {
    api,
    vault,
    needed,
  }: { readonly api: ApiRow; readonly vault: KeyVault | undefined; readonly needed: MakeNeeds<Needed> },
): Promise<MadeKey> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  const { roles, events: madeRoles } = await findRoles(tx, call, wanted.roles ?? [], needed.createRole);
  await refuseSecondOfManager(tx, call, wanted.name);
  const newSlugs = needed.createPermission === undefined ? {} : { newSlugsNeed: needed.createPermission };
  const permissions = await ensurePermissions(tx, call, wanted.permissions ?? [], newSlugs);
  const identity = wanted.externalId === undefined ? undefined : await ensureIdentity(tx, call, wanted.externalId);

  const { keyId, key, hash, start } = drawKey(deps, api, wanted);
  const createdAt = deps.nowMs();
  const credits = wanted.credits === undefined ? undefined : toCreditRow(wanted.credits);
  await insertKey(tx, {
    id: keyId,
    workspaceId,
    apiId: api.id,
    hash,
    start,
    name: wanted.name ?? null,
    identityId: identity?.identityId ?? null,
    ownerId: wanted.ownerId ?? null,
    environment: wanted.environment ?? null,
    meta: wanted.meta === undefined || Object.keys(wanted.meta).length === 0 ? null : wanted.meta,
    enabled: wanted.enabled,
    expiresAt: wanted.expires ?? null,
    manager: creatingManager(call),
    createdAt,
    credits:
      credits === undefined
        ? undefined
        : {
            granted: credits.remaining,
            refillAmount: credits.refillAmount,
            refillDay: credits.refillDay,
            // A refill that is set today starts with the next due date, even if today is one.
            lastRefillOn: utcDate(createdAt),
            lastRefillAt: credits.refillAmount === null ? null : createdAt,
          },
    permissionIds: permissions.permissions.map(({ id }) => id),
    roleIds: roles.map(({ id }) => id),
    ratelimits: newRatelimits(deps, wanted.ratelimits ?? []),
  });
  if (vault !== undefined) {
    const owner = { workspaceId, keyId };
    await insertKeySecret(tx, { ...owner, sealed: vault.seal(owner, key), createdAt });
  }
  await insertAudit(tx, call, [
    ...(identity?.events ?? []),
    ...madeRoles,
    ...permissions.events,
    ...permissions.permissions.map(({ id, slug }) => connectedToKey(keyId, { type: "permission", id, name: slug })),
    ...roles.map(({ id, name }) => connectedToKey(keyId, { type: "role", id, name })),
    keyCreated({ id: keyId, name: wanted.name }, { id: api.id, name: api.name }),
  ]);
  return { keyId, key };
}

/** The roles with these names, each once. Throws PublicError 404, or 403 when creating them needs a permission. */
async function findRoles<Needed extends NeededPermission>(
  tx: PoolClient,
  call: CallNeeding<unknown, Needed>,
  names: readonly string[],
  createRole: Needed | undefined,
): Promise<{ readonly roles: readonly NamedPart[]; readonly events: readonly AuditEvent[] }> {
  if (createRole === undefined) return { roles: await getRolesByName(tx, call.caller.workspaceId, names), events: [] };
  const { roles, events } = await ensureRoles(tx, call, names, { newNamesNeed: createRole });
  return { roles: [...new Map([...roles.values()].map((role) => [role.id, role])).values()], events: [...events] };
}

/**
 * A manager's keys are distinguished by name. A second one with the same name cannot be answered with the first, whose
 * string is not stored. Throws PublicError 409 `managed_exists`.
 */
async function refuseSecondOfManager(
  db: Pick<PoolClient, "query">,
  call: Call<unknown>,
  name: string | undefined,
): Promise<void> {
  const manager = creatingManager(call);
  if (manager === null) return;
  const { workspaceId } = call.caller;
  const existing = await findKeyIdByManager(db, { workspaceId, manager, name: name ?? null });
  if (existing === undefined) return;
  const which = name === undefined ? "a key without a name" : "a key of this name";
  throw new PublicError("managed_exists", `${manager} has ${which} already: ${existing}.`);
}
