import type { PoolClient } from "pg";
import { applyCreditsUpdate, type CreditsState } from "../../../core/credits/credits.ts";
import { type AuditEvent, insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { type KeySettings, updateKey } from "../../db/key-changes.ts";
import { findKey, type KeyRef, type KeyRow, listKeyParts } from "../../db/keys.ts";
import { type RatelimitRow, replaceKeyRatelimits } from "../../db/ratelimits.ts";
import type { Actor } from "../actor.ts";
import type { CreditsDeps } from "../deps.ts";
import { ensureIdentity } from "../identities/identities.ts";
import { auditEvent, lockManaged } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import { adopting, guardManaged } from "../managed/rules.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { newRatelimits, type RequestedRatelimit } from "../ratelimits/new-ratelimits.ts";
import { checkMeta } from "../refusals/check-meta.ts";
import { invalidField } from "../refusals/refusals.ts";
import { toCreditRow, toCreditsState } from "./credits.ts";
import { inCreditsTransaction } from "./credits-transaction.ts";

type Refill = CreditsState["refill"];

/** Changes to a key. Omitted members stay unchanged; `null` removes a value. */
export interface KeyChanges {
  readonly name?: string | null | undefined;
  readonly externalId?: string | null | undefined;
  /** Whether the `externalId` is also stored as the v1 owner. If false, a change of the `externalId` removes the owner. */
  readonly storesOwner?: true;
  readonly meta?: Readonly<Record<string, unknown>> | null | undefined;
  /** Unix ms. */
  readonly expires?: number | null | undefined;
  /** New credits and refill; `null` for an unlimited key without a refill. */
  readonly credits?:
    | { readonly remaining?: number | null | undefined; readonly refill?: Refill | null | undefined }
    | null
    | undefined;
  /** Returns the new limits of the key, given its current ones. */
  readonly ratelimits?:
    | readonly RequestedRatelimit[]
    | ((held: readonly RequestedRatelimit[]) => readonly RequestedRatelimit[])
    | null
    | undefined;
  readonly enabled?: boolean | undefined;
}

export interface KeyChange<Required extends RequiredPermission> {
  readonly keyId: string;
  readonly changes: KeyChanges;
  /** Permission that the root key needs on the key's API. */
  readonly needed: Required;
  /** Field of the request that contains the refill. Errors report it as the location of the problem. */
  readonly refillField: string;
  /** Replaces the roles and permissions of the locked key. Returns the audit events. */
  readonly relink: (tx: PoolClient, key: KeyRow) => Promise<readonly AuditEvent[]>;
}

/**
 * Changes a key atomically. @throws PublicError, checked in this order: 404, 403, 409 `managed_by_manifest`, 400, the errors of `relink`,
 * 409 `managed_exists`.
 */
export async function changeKey<Required extends RequiredPermission>(
  actor: Actor<Required, CreditsDeps>,
  { keyId, changes, needed: required, refillField, relink }: KeyChange<Required>,
): Promise<void> {
  const { caller, deps } = actor;
  const ref = { workspaceId: caller.workspaceId, keyId };
  await inCreditsTransaction(deps, ref, async (tx, changeCredits) => {
    const key = await lockManaged(tx, MANAGED.key, { workspaceId: caller.workspaceId, which: keyId });
    actor.require(required, key.api_id);
    const manager = guardManaged(actor, MANAGED.key, key);
    const updatedAt = deps.nowMs();
    const lastRefillAt = lastRefillAfter(key, checkCredits(changes, key, refillField), updatedAt);
    checkMeta(changes.meta);
    const before = await fieldsOf(tx, ref, key);
    const linked = await relink(tx, key);
    const events = await changeParts(tx, actor, key, { changes, manager, lastRefillAt, updatedAt });
    let credits: { readonly before?: CreditsState; readonly after?: CreditsState } = {};
    if (changesCredits(changes)) {
      await changeCredits((current) => {
        const state = toCreditsState(current);
        credits = { before: state, after: creditsAfter(state, changes, refillField) };
        return toCreditRow(credits.after ?? state);
      });
    }
    const stored = await findKey(tx, ref);
    const after = stored && (await fieldsOf(tx, ref, stored));
    // The key is not found here if the API was deleted while the call waited for the key's lock. No change is then logged.
    const changed = after && changeOf({ ...before, credits: credits.before }, { ...after, credits: credits.after });
    await insertAudit(tx, actor, [
      ...linked,
      ...events.map((event) => (event.event === KEY_UPDATED ? { ...event, ...changed } : event)),
    ]);
  });
}

const KEY_UPDATED = MANAGED.key.events.changed;

/** Returns the fields of a key for the audit log, without its credits, because their exact number is in Redis. */
async function fieldsOf(tx: PoolClient, ref: KeyRef, key: KeyRow) {
  const [deps] = await listKeyParts(tx, { workspaceId: ref.workspaceId, keyIds: [ref.keyId] });
  const { name, enabled, expires_at: expires, external_id: externalId, meta, owner_id: ownerId, manager } = key;
  const ratelimits = (deps?.ratelimits ?? []).map(toRequested);
  return {
    ...{ name, enabled, expires, externalId, ownerId, meta, manager, ratelimits },
    roles: [...(deps?.roles ?? [])].sort(),
    permissions: [...(deps?.permissions ?? [])].sort(),
  };
}

/** Returns whether the changes affect credits. An empty `credits` object changes nothing. */
const changesCredits = ({ credits }: KeyChanges): boolean =>
  credits !== undefined && (credits === null || credits.remaining !== undefined || credits.refill !== undefined);

/**
 * Checks the refill rules against the stored key before any write. The row suffices: it may have outdated remaining credits, but its refill
 * is always current, and so is whether the key is limited. Returns the refill that the key will have.
 */
function checkCredits(changes: KeyChanges, key: KeyRow, refillField: string): Refill {
  const stored =
    key.remaining === null
      ? undefined
      : { remaining: key.remaining, refillAmount: key.refill_amount, refillDay: key.refill_day };
  return creditsAfter(toCreditsState(stored), changes, refillField).refill;
}

/** Returns the time of the last refill. A refill that is new or moves to another day counts as refilled now, as in `putKeyCredits`. */
function lastRefillAfter(key: KeyRow, refill: Refill, nowMs: number): number | null {
  if (refill === undefined) return null;
  const isNew = key.refill_amount === null || key.refill_day !== (refill.refillDay ?? null);
  return isNew ? nowMs : key.last_refill_at;
}

/** Returns the resulting credits. Throws PublicError 400 if credits and refill contradict each other. */
function creditsAfter(current: CreditsState, { credits }: KeyChanges, refillField: string): CreditsState {
  const next = applyCreditsUpdate(current, credits);
  if ("error" in next) throw invalidField(refillField, next.error);
  return next;
}

/** Returns the resulting v1 owner: unchanged unless the externalId changes. A change through v2 replaces the owner. */
function ownerAfter(key: KeyRow, { externalId, storesOwner }: KeyChanges): string | null {
  if (externalId === undefined) return key.owner_id;
  return storesOwner === true || externalId === key.owner_id ? externalId : null;
}

async function listHeld(tx: PoolClient, key: KeyRef): Promise<RequestedRatelimit[]> {
  const [deps] = await listKeyParts(tx, { workspaceId: key.workspaceId, keyIds: [key.keyId] });
  return (deps?.ratelimits ?? []).map(toRequested);
}

const toRequested = ({ name, max_count, duration_ms, auto_apply }: RatelimitRow): RequestedRatelimit => ({
  name,
  limit: max_count,
  duration: duration_ms,
  autoApply: auto_apply,
});

/** Changes everything except links and credits. Returns the audit events. */
async function changeParts(
  tx: PoolClient,
  actor: Actor,
  key: KeyRow,
  settings: { readonly changes: KeyChanges } & Pick<KeySettings, "manager" | "lastRefillAt" | "updatedAt">,
): Promise<AuditEvent[]> {
  const { caller, deps } = actor;
  const { changes, manager, lastRefillAt, updatedAt } = settings;
  const ref = { workspaceId: caller.workspaceId, keyId: key.id };
  const events: AuditEvent[] = [];
  if (changes.ratelimits !== undefined) {
    const owner = { ...ref, createdAt: updatedAt };
    const { ratelimits } = changes;
    const requested = typeof ratelimits === "function" ? ratelimits(await listHeld(tx, ref)) : (ratelimits ?? []);
    await replaceKeyRatelimits(tx, owner, newRatelimits(deps, requested));
  }
  let identityId = changes.externalId === null ? null : key.identity_id;
  if (typeof changes.externalId === "string") {
    const ensured = await ensureIdentity(tx, actor, changes.externalId);
    events.push(...ensured.events);
    identityId = ensured.identityId;
  }
  const meta = changes.meta === undefined ? key.meta : changes.meta;
  const name = changes.name === undefined ? key.name : changes.name;
  await adopting(actor, MANAGED.key, () =>
    updateKey(tx, ref, {
      name,
      identityId,
      ownerId: ownerAfter(key, changes),
      meta: meta === null || Object.keys(meta).length === 0 ? null : meta,
      enabled: changes.enabled ?? key.enabled,
      expiresAt: changes.expires === undefined ? key.expires_at : changes.expires,
      lastRefillAt,
      manager,
      updatedAt,
    }),
  );
  return [...events, auditEvent(MANAGED.key, { ...key, name }, "Updated")];
}
