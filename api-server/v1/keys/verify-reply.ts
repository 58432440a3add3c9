import type { LimitOutcome } from "../../../core/charges.ts";
import type { Code } from "../../../core/verification/codes.ts";
import { KeyView } from "../../../core/verification/key-view.ts";
import type { SelectedLimit } from "../../../core/verification/select-limits.ts";
import { DataJson } from "../../procedure.ts";
import { LEGACY_LIMIT } from "./legacy-limit.ts";
import type { ResponseBody } from "./verify-schemas.ts";

/** The part of an answer that describes the key and is the same for every outcome. Cached as long as the key's record. */
type KeyPart = Omit<ResponseBody, "valid" | "code" | "requestId" | "remaining" | "ratelimit">;

/** The members of the key's part as JSON, without its braces; never none. */
const keyPartOf = KeyView.remember((view) => JSON.stringify(toKeyPart(view)).slice(1, -1));

/** A request id is made by us and needs no escapes. */
export const notFoundJson = (requestId: string): DataJson =>
  new DataJson(`{"valid":false,"code":"NOT_FOUND","requestId":"${requestId}"}`);

/** The answer for a key that was found (api-v1.md section 6.1), as the JSON that its schema would produce. */
export function answerJson(
  view: KeyView,
  result: {
    readonly code: Code;
    readonly requestId: string;
    readonly limits: readonly SelectedLimit[];
    /** One for each limit, in the same order; undefined when none were checked. */
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

/** Which limit is reported: the first that refused, so that a caller knows for what to wait; else `default`, else the first. They are in the order of their names. */
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
