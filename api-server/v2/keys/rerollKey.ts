import type { PoolClient } from "pg";
import * as z from "zod";
import { EXPIRES_MAX_MS } from "../../../core/keys/key-hash.ts";
import { expiryOfPredecessor, successorPrefix } from "../../../core/keys/reroll.ts";
import { utcDate } from "../../../core/utc-date.ts";
import type { CreditRow } from "../../credits/service.ts";
import { type ApiRow, findApi } from "../../db/apis.ts";
import { insertAudit } from "../../db/audit.ts";
import { copyKeyGrants, insertKey, setKeyExpiry } from "../../db/key-changes.ts";
import { findLastRefill } from "../../db/key-credits.ts";
import { hasKeySecret, insertKeySecret } from "../../db/key-secrets.ts";
import { type KeyRow, listKeyParts, lockKey } from "../../db/keys.ts";
import { type ChangeCredits, inCreditsTransaction } from "../../domain/keys/credits-transaction.ts";
import { requireKeyEncryption } from "../../domain/keys/key-encryption.ts";
import { drawKey } from "../../domain/keys/new-key.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { newRatelimits } from "../../domain/ratelimits/new-ratelimits.ts";
import { keyNotFound } from "../../domain/refusals/refusals.ts";
import type { KeyVault } from "../../keys/key-vault.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { NewKey } from "../key-reply.ts";
import { KeyId } from "../schemas.ts";

/** Body of the request; unknown members are ignored. */
const Body = z.object({
  keyId: KeyId,
  expiration: z
    .int()
    .min(0)
    .max(EXPIRES_MAX_MS)
    .describe(
      "How long the old key can still be used, in ms from now, rounded up to the minute. With 0, it expires immediately.",
    )
    .meta({ examples: [86_400_000] }),
});
type Body = z.output<typeof Body>;

const required = {
  createKey: onApi("create_key"),
  encryptKey: onApi("encrypt_key", "when the key is recoverable"),
};

export const rerollKey = defineProcedure({
  path: "keys.rerollKey",
  effect: "change",
  summary: "Replace a key with a new one that has the same settings",
  description:
    "Creates a successor with a new secret, a new id and all settings of the old key. The old key remains valid for the given time, but not beyond its own expiry. The remaining credits are copied, not moved, so each reroll of the old key multiplies them. Rate-limit counters start at zero.",
  permissions: required,
  errors: ["key_not_found", "precondition_failed"],
  body: Body,
  data: NewKey,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<NewKey> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const ref = { workspaceId, keyId: body.keyId };
  return inCreditsTransaction(deps, ref, async (tx, changeCredits) => {
    const old = await lockKey(tx, ref);
    if (old === undefined) throw keyNotFound(body.keyId);
    const vault = await checkGrants(tx, call, old);
    const api = await findApi(tx, { workspaceId, apiId: old.api_id });
    // While this call waited for the key's lock, the API may have been deleted, and with it the key.
    if (api === undefined) throw keyNotFound(body.keyId);
    const credits = old.remaining === null ? undefined : await readCredits(changeCredits);
    const successor = await insertSuccessor(tx, call, { old, api, credits, vault });
    const nowMs = deps.nowMs();
    const expiresAt = expiryOfPredecessor({
      nowMs,
      gracePeriodMs: body.expiration,
      expiresMs: old.expires_at ?? undefined,
    });
    await setKeyExpiry(tx, { ...ref, expiresAt });
    await insertAudit(tx, call, [
      {
        event: "key.reroll",
        description: `Rerolled key ${old.id} to key ${successor.keyId}`,
        targets: [
          { type: "key", id: successor.keyId, name: old.name ?? undefined },
          { type: "key", id: old.id, name: old.name ?? undefined },
          { type: "api", id: api.id, name: api.name },
        ],
      },
    ]);
    return successor;
  });
}

/**
 * Returns the vault if the key is recoverable, otherwise `undefined`. Throws PublicError 403 for a missing permission before it checks for
 * 412.
 */
async function checkGrants(
  tx: PoolClient,
  call: Call<Body, typeof required>,
  old: KeyRow,
): Promise<KeyVault | undefined> {
  const { api_id: apiId, key_encryption: isEnabled } = old;
  call.require(required.createKey, apiId);
  const isRecoverable = await hasKeySecret(tx, { workspaceId: call.caller.workspaceId, keyId: old.id });
  if (!isRecoverable) return undefined;
  call.require(required.encryptKey, apiId);
  return requireKeyEncryption(call, required.encryptKey, { apiId, isEnabled });
}

/**
 * Returns the exact remaining credits of the old key. Suspends the counter for the read, but does not change it, because reroll copies the
 * credits. As a result, both keys can be used during a grace period, and a caller that missed the response and repeats the call loses no
 * credits. Copying gives the caller no new authority, because it can create keys with any number of credits anyway (api-v2.md section
 * 13.8).
 */
async function readCredits(changeCredits: ChangeCredits): Promise<CreditRow | undefined> {
  let credits: CreditRow | undefined;
  await changeCredits((current) => {
    credits = current;
    return current;
  });
  return credits;
}

async function insertSuccessor(
  tx: PoolClient,
  call: Call<Body>,
  {
    old,
    api,
    credits,
    vault,
  }: { old: KeyRow; api: ApiRow; credits: CreditRow | undefined; vault: KeyVault | undefined },
): Promise<NewKey> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  const [parts] = await listKeyParts(tx, { workspaceId, keyIds: [old.id] });
  const { keyId, key, hash, start } = drawKey(deps, api, { prefix: successorPrefix(old.start) });
  const createdAt = deps.nowMs();
  await insertKey(tx, {
    id: keyId,
    workspaceId,
    apiId: api.id,
    hash,
    start,
    name: old.name,
    // If the identity was deleted, the new key gets none, because a deleted identity must not have keys.
    identityId: old.external_id === null ? null : old.identity_id,
    ownerId: old.owner_id,
    environment: old.environment,
    meta: old.meta,
    enabled: old.enabled,
    expiresAt: old.expires_at,
    // The new key has no manager, because the manifest describes only the old key.
    manager: null,
    createdAt,
    credits: credits && {
      granted: credits.remaining,
      refillAmount: credits.refillAmount,
      refillDay: credits.refillDay,
      // A refill that is due but that the old key has not received yet is due for the new key too.
      lastRefillOn: (await findLastRefill(tx, { workspaceId, keyId: old.id })) ?? utcDate(createdAt),
      lastRefillAt: old.last_refill_at,
    },
    permissionIds: [],
    roleIds: [],
    ratelimits: newRatelimits(
      deps,
      (parts?.ratelimits ?? []).map(({ name, max_count: limit, duration_ms: duration, auto_apply: autoApply }) => ({
        name,
        limit,
        duration,
        autoApply,
      })),
    ),
  });
  await copyKeyGrants(tx, { workspaceId, fromKeyId: old.id, toKeyId: keyId });
  if (vault !== undefined) {
    const owner = { workspaceId, keyId };
    await insertKeySecret(tx, { ...owner, sealed: vault.seal(owner, key), createdAt });
  }
  return { keyId, key };
}
