import type { PoolClient } from "pg";
import * as z from "zod";
import { checkRefill } from "../../../core/credits/credits.ts";
import { PublicError } from "../../../core/errors.ts";
import { utcDate } from "../../../core/utc-date.ts";
import { ensureIdentity } from "../../domain/identities/identities.ts";
import { toCreditRow } from "../../domain/keys/credits.ts";
import { requireKeyEncryption } from "../../domain/keys/key-encryption.ts";
import { connectedToKey, keyCreated } from "../../domain/keys/key-events.ts";
import { drawKey } from "../../domain/keys/new-key.ts";
import { creatingManager } from "../../domain/managed/rules.ts";
import { ensurePermissions, getRolesByName } from "../../domain/permissions/permission-links.ts";
import { newRatelimits } from "../../domain/ratelimits/new-ratelimits.ts";
import { checkMeta } from "../../domain/refusals/check-meta.ts";
import { invalidField } from "../../domain/refusals/invalid-field.ts";
import { apiNotFound } from "../../domain/refusals/not-found.ts";
import type { KeyVault } from "../../key-vault.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { type ApiRow, findApi } from "../../store/apis.ts";
import { insertAudit } from "../../store/audit.ts";
import { insertKey } from "../../store/key-changes.ts";
import { insertKeySecret } from "../../store/key-secrets.ts";
import { findKeyIdByManager } from "../../store/keys.ts";
import { inTransaction } from "../../store/transaction.ts";
import { isUniqueViolation } from "../../store/unique-violation.ts";
import { Credits, Expires, ExternalId, Meta, RatelimitsIn, RoleName, ShortApiId, Slug } from "../schemas.ts";
import { NewKey } from "./new-key-reply.ts";

const Body = z.strictObject({
  apiId: ShortApiId,
  prefix: z
    .string()
    .min(1)
    .max(16)
    .regex(/^[a-zA-Z0-9_]+$/)
    .optional()
    .describe("The beginning of the key, before an underscore.")
    .meta({ examples: ["prod"] }),
  name: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("A name for people.")
    .meta({ examples: ["Billing"] }),
  byteLength: z
    .int()
    .min(16)
    .max(255)
    .optional()
    .describe("Random bytes in the key.")
    .meta({ examples: [16] }),
  externalId: ExternalId.optional(),
  meta: Meta.optional(),
  roles: z.array(RoleName).max(100).optional().describe("Names of roles that exist."),
  permissions: z.array(Slug).max(1000).optional().describe("Slugs; permissions that do not exist yet are created."),
  expires: Expires.optional(),
  credits: Credits.optional().describe("Omitted: unlimited."),
  ratelimits: RatelimitsIn.optional().describe("Of entries with the same name the last one counts."),
  enabled: z.boolean().default(true).describe("A disabled key verifies as DISABLED."),
  recoverable: z.boolean().default(false).describe("Whether an encrypted copy of the secret is kept."),
});
type Body = z.output<typeof Body>;

const needed = {
  createKey: onApi("create_key"),
  encryptKey: onApi("encrypt_key", "with `recoverable`"),
};

export const createKey = defineProcedure({
  path: "keys.createKey",
  effect: "change",
  summary: "Create a key",
  description:
    "Creates a key in an API. Only this answer has the secret: the server stores its hash, and an encrypted copy if the key is recoverable. All or nothing: when a role does not exist, nothing is created.",
  permissions: needed,
  errors: ["api_not_found", "role_not_found", "precondition_failed", "managed_exists"],
  body: Body,
  data: NewKey,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<NewKey> {
  const { body, caller, deps } = call;
  const { apiId } = body;
  const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  call.require(needed.createKey, apiId);
  const vault = body.recoverable
    ? requireKeyEncryption(call, needed.encryptKey, { apiId, isEnabled: api.key_encryption })
    : undefined;
  const fault = body.credits === undefined ? undefined : checkRefill(body.credits);
  if (fault !== undefined) throw invalidField("body.credits.refill", fault);
  checkMeta(body.meta);
  try {
    return await inTransaction(deps, (tx) => insertEverything(tx, call, { api, vault }));
  } catch (error) {
    // The same manager created a key with this name concurrently; now it can be found and named.
    if (!isUniqueViolation(error, "keys_manager")) throw error;
    await refuseSecondOfManager(deps.db, call);
    throw error;
  }
}

async function insertEverything(
  tx: PoolClient,
  call: Call<Body>,
  { api, vault }: { readonly api: ApiRow; readonly vault: KeyVault | undefined },
): Promise<NewKey> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const roles = await getRolesByName(tx, workspaceId, body.roles ?? []);
  await refuseSecondOfManager(tx, call);
  const permissions = await ensurePermissions(tx, call, body.permissions ?? []);
  const identity = body.externalId === undefined ? undefined : await ensureIdentity(tx, call, body.externalId);

  const { keyId, key, hash, start } = drawKey(deps, api, body);
  const createdAt = deps.nowMs();
  const credits = body.credits === undefined ? undefined : toCreditRow(body.credits);
  await insertKey(tx, {
    id: keyId,
    workspaceId,
    apiId: api.id,
    hash,
    start,
    name: body.name ?? null,
    identityId: identity?.identityId ?? null,
    ownerId: null,
    environment: null,
    meta: body.meta === undefined || Object.keys(body.meta).length === 0 ? null : body.meta,
    enabled: body.enabled,
    expiresAt: body.expires ?? null,
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
    ratelimits: newRatelimits(deps, body.ratelimits ?? []),
  });
  if (vault !== undefined) {
    const owner = { workspaceId, keyId };
    await insertKeySecret(tx, { ...owner, sealed: vault.seal(owner, key), createdAt });
  }
  await insertAudit(tx, call, [
    ...(identity?.events ?? []),
    ...permissions.events,
    ...permissions.permissions.map(({ id, slug }) => connectedToKey(keyId, { type: "permission", id, name: slug })),
    ...roles.map(({ id, name }) => connectedToKey(keyId, { type: "role", id, name })),
    keyCreated({ id: keyId, name: body.name }, { id: api.id, name: api.name }),
  ]);
  return { keyId, key };
}

/**
 * A manager's keys are distinguished by name. A second one with the same name cannot be answered with the first, whose
 * string is not stored. Throws PublicError 409 `managed_exists`.
 */
async function refuseSecondOfManager(db: Pick<PoolClient, "query">, call: Call<Body>): Promise<void> {
  const manager = creatingManager(call);
  if (manager === null) return;
  const { workspaceId } = call.caller;
  const existing = await findKeyIdByManager(db, { workspaceId, manager, name: call.body.name ?? null });
  if (existing === undefined) return;
  const which = call.body.name === undefined ? "a key without a name" : "a key of this name";
  throw new PublicError("managed_exists", `${manager} has ${which} already: ${existing}.`);
}
