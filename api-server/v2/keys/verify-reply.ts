import type { Code } from "../../../core/verification/codes.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import { effectiveIdentityLimits, type SelectedLimit } from "../../../core/verification/select-limits.ts";
import type { LimitOutcome } from "../../../edge/counters/contract.ts";
import type { Data } from "./verify-schemas.ts";

/** What an answer says of the key itself, whatever the outcome. Made once for as long as the key's record is cached. */
type KeyPart = Omit<Data, "valid" | "code" | "credits" | "ratelimits">;

const keyParts = new WeakMap<KeyView, KeyPart>();

/** The answer of a verification of a key that was found (api/v2 section 12.1). */
export function toData(
  view: KeyView,
  result: {
    readonly code: Code;
    readonly limits: readonly SelectedLimit[] | undefined;
    /** One for each limit, in the same order. */
    readonly outcomes: readonly LimitOutcome[] | undefined;
    readonly credits: number | undefined;
  },
): Data {
  const { code, limits, outcomes, credits } = result;
  let keyPart = keyParts.get(view);
  if (keyPart === undefined) {
    keyPart = toKeyPart(view);
    keyParts.set(view, keyPart);
  }
  // Assigned one by one: a spread of optional members costs more than all the rest of a verification.
  const data: Data = {
    valid: code === "VALID",
    code,
    keyId: keyPart.keyId,
    enabled: keyPart.enabled,
    name: keyPart.name,
    meta: keyPart.meta,
    expires: keyPart.expires,
    permissions: keyPart.permissions,
    roles: keyPart.roles,
    identity: keyPart.identity,
    credits,
    ratelimits: undefined,
  };
  if (limits !== undefined && limits.length > 0 && outcomes !== undefined) {
    data.ratelimits = limits.map((limit, index) => toChecked(limit, outcomes[index]));
  }
  return data;
}

function toChecked(limit: SelectedLimit, outcome: LimitOutcome | undefined): NonNullable<Data["ratelimits"]>[number] {
  if (outcome === undefined) throw new Error(`the counters gave no outcome for the limit ${limit.name}`);
  return {
    id: limit.id,
    name: limit.name,
    limit: limit.limit,
    duration: limit.durationMs,
    exceeded: !outcome.passed,
    remaining: outcome.remaining,
    reset: outcome.resetMs,
    autoApply: limit.autoApply,
  };
}

function toKeyPart(view: KeyView): KeyPart {
  const { key, identity, permissions, roles } = view;
  return {
    keyId: key.keyId,
    enabled: key.enabled,
    name: key.name,
    meta: unlessEmpty(key.meta),
    expires: key.expiresMs,
    permissions: permissions.length === 0 ? undefined : [...permissions],
    roles: roles.length === 0 ? undefined : [...roles],
    identity: identity === undefined ? undefined : toIdentity(view, identity),
  };
}

function toIdentity(view: KeyView, identity: NonNullable<KeyView["identity"]>): NonNullable<Data["identity"]> {
  const ratelimits = effectiveIdentityLimits(view).map(({ id, name, limit, durationMs, autoApply }) => ({
    id,
    name,
    limit,
    duration: durationMs,
    autoApply,
  }));
  return {
    id: identity.id,
    externalId: identity.externalId,
    meta: unlessEmpty(identity.meta),
    ratelimits: ratelimits.length === 0 ? undefined : ratelimits,
  };
}

const unlessEmpty = (meta: Record<string, unknown> | undefined): Record<string, unknown> | undefined =>
  meta === undefined || Object.keys(meta).length === 0 ? undefined : meta;
