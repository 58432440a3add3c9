import type { LimitOutcome } from "../../../core/charges.ts";
import type { Code } from "../../../core/verification/codes.ts";
import { KeyView } from "../../../core/verification/key-view.ts";
import { effectiveIdentityLimits, type SelectedLimit } from "../../../core/verification/select-limits.ts";
import { DataJson } from "../../procedure.ts";
import type { Data } from "./verify-schemas.ts";

/** Members of a response that describe the key and do not depend on the outcome. They are cached for as long as the key's record. */
type KeyPart = Omit<Data, "valid" | "code" | "credits" | "ratelimits">;

/** Returns the response members that describe the key, as JSON without the enclosing braces. The result is never empty. */
const keyPartOf = KeyView.remember((view) => JSON.stringify(toKeyPart(view)).slice(1, -1));

/** Response if the key does not exist, or the caller must not find out that it exists. */
export const NOT_FOUND = new DataJson(JSON.stringify({ valid: false, code: "NOT_FOUND" } satisfies Data));

/**
 * Returns the response for a key that was found (api-v2.md section 12.1), as the JSON that its schema would produce. The part that is the
 * same in all responses for a key is serialized once.
 */
export function toDataJson(
  view: KeyView,
  result: {
    readonly code: Code;
    readonly limits: readonly SelectedLimit[] | undefined;
    /** One outcome per limit, in the order of the limits; `undefined` if no limits were checked. */
    readonly outcomes: readonly LimitOutcome[] | undefined;
    readonly credits: number | undefined;
  },
): DataJson {
  const { code, limits, outcomes, credits } = result;
  let json = `{"valid":${code === "VALID"},"code":"${code}",${keyPartOf(view)}`;
  if (credits !== undefined) json += `,"credits":${credits}`;
  if (limits !== undefined && limits.length > 0 && outcomes !== undefined) {
    const checked = limits.map((limit, index) => checkedJson(limit, outcomes[index]));
    json += `,"ratelimits":[${checked.join(",")}]`;
  }
  return new DataJson(`${json}}`);
}

function checkedJson(
  { id, name, limit, durationMs, autoApply }: SelectedLimit,
  outcome: LimitOutcome | undefined,
): string {
  if (outcome === undefined) throw new Error(`the counters gave no outcome for the limit ${name}`);
  const { passed, remaining, resetMs } = outcome;
  const which = `"id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"limit":${limit},"duration":${durationMs}`;
  return `{${which},"exceeded":${!passed},"remaining":${remaining},"reset":${resetMs},"autoApply":${autoApply}}`;
}

/** Returns the members in the order of the schema, which is also their order in the response. */
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
