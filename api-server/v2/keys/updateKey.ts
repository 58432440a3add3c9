import type { PoolClient } from "pg";
import * as z from "zod";
import { applyCreditsUpdate, type CreditsState } from "../../../core/credits/credits.ts";
import { ensureIdentity } from "../../domain/identities/identities.ts";
import { toCreditRow, toCreditsState } from "../../domain/keys/credits.ts";
import { inCreditsTransaction } from "../../domain/keys/credits-transaction.ts";
import { auditEvent, lockManaged } from "../../domain/managed/changes.ts";
import { adopting, guardManaged } from "../../domain/managed/rules.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { ensurePermissions, getRolesByName } from "../../domain/permissions/permission-links.ts";
import { newRatelimits } from "../../domain/ratelimits/new-ratelimits.ts";
import { checkMeta } from "../../domain/refusals/check-meta.ts";
import { invalidField } from "../../domain/refusals/invalid-field.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { type AuditEvent, insertAudit } from "../../store/audit.ts";
import {
  type KeySettings,
  replaceKeyPermissions,
  replaceKeyRoles,
  updateKey as updateKeyRow,
} from "../../store/key-changes.ts";
import type { KeyRow } from "../../store/keys.ts";
import { replaceKeyRatelimits } from "../../store/ratelimits.ts";
import {
  Empty,
  Expires,
  ExternalId,
  KeyId,
  Meta,
  RatelimitsIn,
  Refill,
  UpdateRoleName,
  UpdateSlug,
} from "../schemas.ts";

const CreditsUpdate = z.strictObject({
  remaining: z
    .int()
    .min(0)
    .nullable()
    .optional()
    .describe("Credits left; null is unlimited, and clears the refill.")
    .meta({ examples: [1000] }),
  refill: Refill.nullable().optional().describe("null clears the refill. Not with unlimited credits."),
});

const Body = z.strictObject({
  keyId: KeyId,
  name: z
    .string()
    .min(1)
    .max(255)
    .nullable()
    .optional()
    .describe("null removes it.")
    .meta({ examples: ["Billing"] }),
  externalId: ExternalId.nullable().optional().describe("null detaches the key from its identity."),
  meta: Meta.nullable().optional().describe("Replaces all of it; null removes it."),
  expires: Expires.nullable().optional().describe("null: never."),
  credits: CreditsUpdate.nullable().optional().describe("null: unlimited, without a refill."),
  ratelimits: RatelimitsIn.nullable().optional().describe("Replaces all of them; null or `[]` removes all."),
  enabled: z.boolean().optional().describe("A disabled key verifies as DISABLED."),
  roles: z.array(UpdateRoleName).max(100).optional().describe("Replaces all of them; `[]` removes all."),
  permissions: z
    .array(UpdateSlug)
    .max(1000)
    .optional()
    .describe("Replaces all direct ones; `[]` removes all. Permissions that do not exist yet are created."),
});
type Body = z.output<typeof Body>;

const needed = { updateKey: onApi("update_key") };

export const updateKey = defineProcedure({
  path: "keys.updateKey",
  effect: "change",
  summary: "Change a key",
  description: "Changes the given fields; omitted fields stay. The next verification uses the new values.",
  permissions: needed,
  errors: ["key_not_found", "role_not_found", "managed_elsewhere", "managed_exists"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const ref = { workspaceId: caller.workspaceId, keyId: body.keyId };
  await inCreditsTransaction(deps, ref, async (tx, changeCredits) => {
    const key = await lockManaged(tx, MANAGED.key, { workspaceId: caller.workspaceId, which: body.keyId });
    call.require(needed.updateKey, key.api_id);
    const manager = guardManaged(call, MANAGED.key, key);
    const lastRefillAt = lastRefillAfter(key, checkCredits(body, key), deps.nowMs());
    checkMeta(body.meta);
    const events = await updateParts(tx, call, key, { manager, lastRefillAt });
    if (changesCredits(body)) {
      await changeCredits((current) => toCreditRow(creditsAfter(toCreditsState(current), body)));
    }
    await insertAudit(tx, call, events);
  });
  return {};
}

/** `{}` does not change credits. */
const changesCredits = ({ credits }: Body): boolean =>
  credits !== undefined && (credits === null || credits.remaining !== undefined || credits.refill !== undefined);

/**
 * Checks the rules of refill on the row before anything is written: whether a key is limited, and its refill, are always current
 * there. Returns the refill that the key will have.
 */
function checkCredits(body: Body, key: KeyRow): CreditsState["refill"] {
  const stored =
    key.remaining === null
      ? undefined
      : { remaining: key.remaining, refillAmount: key.refill_amount, refillDay: key.refill_day };
  return creditsAfter(toCreditsState(stored), body).refill;
}

/** A refill that is newly set, or moved to another day, counts from now on: as `putKeyCredits` has it for the next due date. */
function lastRefillAfter(key: KeyRow, refill: CreditsState["refill"], nowMs: number): number | null {
  if (refill === undefined) return null;
  const isNew = key.refill_amount === null || key.refill_day !== (refill.refillDay ?? null);
  return isNew ? nowMs : key.last_refill_at;
}

/** Throws PublicError 400 when the resulting state would contradict itself. */
function creditsAfter(current: CreditsState, { credits }: Body): CreditsState {
  const next = applyCreditsUpdate(current, credits);
  if ("error" in next) throw invalidField("body.credits.refill", next.error);
  return next;
}

/** Updates everything except the credits. Returns the audit events. */
async function updateParts(
  tx: PoolClient,
  call: Call<Body>,
  key: KeyRow,
  { manager, lastRefillAt }: Pick<KeySettings, "manager" | "lastRefillAt">,
): Promise<AuditEvent[]> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const ref = { workspaceId, keyId: body.keyId };
  const events: AuditEvent[] = [];

  if (body.roles !== undefined) {
    const roles = await getRolesByName(tx, workspaceId, body.roles);
    await replaceKeyRoles(tx, { ...ref, roleIds: roles.map(({ id }) => id) });
  }
  if (body.permissions !== undefined) {
    const ensured = await ensurePermissions(tx, call, body.permissions);
    events.push(...ensured.events);
    await replaceKeyPermissions(tx, { ...ref, permissionIds: ensured.permissions.map(({ id }) => id) });
  }
  if (body.ratelimits !== undefined) {
    const owner = { ...ref, createdAt: deps.nowMs() };
    await replaceKeyRatelimits(tx, owner, newRatelimits(deps, body.ratelimits ?? []));
  }
  let identityId = body.externalId === null ? null : key.identity_id;
  if (typeof body.externalId === "string") {
    const ensured = await ensureIdentity(tx, call, body.externalId);
    events.push(...ensured.events);
    identityId = ensured.identityId;
  }
  const meta = body.meta === undefined ? key.meta : body.meta;
  const name = body.name === undefined ? key.name : body.name;
  await adopting(call, MANAGED.key, () =>
    updateKeyRow(tx, ref, {
      name,
      identityId,
      // The owner that v1 was told is another one now.
      ownerId: body.externalId === undefined || body.externalId === key.owner_id ? key.owner_id : null,
      meta: meta === null || Object.keys(meta).length === 0 ? null : meta,
      enabled: body.enabled ?? key.enabled,
      expiresAt: body.expires === undefined ? key.expires_at : body.expires,
      lastRefillAt,
      manager,
      updatedAt: deps.nowMs(),
    }),
  );
  return [...events, auditEvent(MANAGED.key, { ...key, name }, "Updated")];
}
