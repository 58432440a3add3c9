import type { LimitOutcome } from "../../../core/charges.ts";
import type { Code } from "../../../core/verification/codes.ts";
import { KeyView } from "../../../core/verification/key-view.ts";
import type { SelectedLimit } from "../../../core/verification/select-limits.ts";
import { DataJson } from "../../procedure.ts";
import { LEGACY_LIMIT } from "./legacy-limit.ts";
import type { ResponseBody } from "./verify-schemas.ts";

/** Members of a response that describe the key and do not depend on the outcome. They are cached for as long as the key's record. */
type KeyPart = Omit<ResponseBody, "valid" | "code" | "requestId" | "remaining" | "ratelimit">;

/** Returns the response members that describe the key, as JSON without the enclosing braces. The result is never empty. */
const keyPartOf = KeyView.remember((view) => JSON.stringify(toKeyPart(view)).slice(1, -1));

/** Returns the response for an unknown key. The request id needs no escaping, because this server generated it. */
export const notFoundJson = (requestId: string): DataJson =>
  new DataJson(`{"valid":false,"code":"NOT_FOUND","requestId":"${requestId}"}`);

/** Returns the response for a key that was found (api-v1.md section 6.1), as the JSON that its schema would produce. */
export function answerJson(
  view: KeyView,
  result: {
    readonly code: Code;
    readonly requestId: string;
    readonly limits: readonly SelectedLimit[];
    /** One outcome per limit, in the order of the limits; `undefined` if no limits were checked. */
    readonly outcomes: readonly LimitOutcome[] | undefined;
    readonly remaining: number | undefined;
  },
): DataJson {
  const { code, requestId, limits, outcomes, remaining } = result;
  let json = `{"valid":${code === "VALID"},"code":"${code}","requestId":"${requestId}",${keyPartOf(view)}`;
  if (remaining !== undefined) json += `,"remaining":${remaining}`;
  const at = reportedIndex(limits, outcomes);
  const outcome = outcomes?.[at];
  const limit = limits[at];
  if (outcome !== undefined && limit !== undefined) {
    json += `,"ratelimit":{"limit":${limit.limit},"remaining":${outcome.remaining},"reset":${outcome.resetMs}}`;
  }
  return new DataJson(`${json}}`);
}

/**
 * Returns the index of the limit that the response shows. If limits rejected the call, this is the first of these limits, so that the
 * caller knows how long to wait; otherwise `default` or, without it, the first limit. Limits are sorted by name.
 */
function reportedIndex(limits: readonly SelectedLimit[], outcomes: readonly LimitOutcome[] = []): number {
  const refused = outcomes.findIndex(({ passed }) => !passed);
  if (refused !== -1) return refused;
  return Math.max(
    0,
    limits.findIndex(({ name }) => name === LEGACY_LIMIT),
  );
}

function toKeyPart({ key, identity, permissions, roles }: KeyView): KeyPart {
  return {
    keyId: key.keyId,
    enabled: key.enabled,
    permissions: [...permissions],
    roles: [...roles],
    name: key.name,
    ownerId: identity?.externalId ?? key.ownerId,
    meta: key.meta,
    expires: key.expiresMs,
    environment: key.environment,
    identity: identity && { id: identity.id, externalId: identity.externalId, meta: identity.meta ?? {} },
  };
}
