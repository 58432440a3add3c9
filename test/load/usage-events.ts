import { randomBytes } from "node:crypto";
import { makeId } from "../../core/ids.ts";
import { seededKeyId } from "./seed.ts";

/** Whose events are made: of an API that `seedKeys` made. */
export interface EventsOf {
  readonly workspaceId: string;
  readonly apiId: string;
  readonly keys: number;
}

/** Lines of the event stream, of any of the keys, as a sidecar writes them. Each has an id of its own. */
export function eventLines({ workspaceId, apiId, keys }: EventsOf, count: number): string[] {
  const nowMs = Date.now();
  return Array.from({ length: count }, (_, n) =>
    JSON.stringify({
      type: "verification",
      workspaceId,
      keySpaceId: `ks_${apiId}`,
      apiId,
      keyId: seededKeyId(apiId, Math.floor(Math.random() * keys)),
      identityId: "id_abcdefghijklmnop",
      externalId: "user_123456",
      region: "eu-central-1",
      source: "sidecar",
      appId: "pol_abcdefghijklmnop",
      id: makeId("event", randomBytes(16)),
      requestId: makeId("request", randomBytes(16)),
      timeMs: nowMs - (n % 2000),
      outcome: n % 10 === 0 ? "RATE_LIMITED" : "VALID",
      tags: ["path=/orders"],
      spentCredits: 1,
      latencyMs: 0.25,
    }),
  );
}
