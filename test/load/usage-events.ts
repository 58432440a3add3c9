import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { makeId } from "../../core/ids.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
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

/** Larger entries than sidecars write are not read. */
const LINES_PER_ENTRY = 100;

/** Appends events to their workspace's stream as sidecars do, without asking for room. */
export async function addToStream(redis: Redis, of: EventsOf, count: number): Promise<void> {
  const stream = new RedisKeys().events(of.workspaceId);
  for (let made = 0; made < count; ) {
    const pipeline = redis.pipeline();
    for (let entry = 0; entry < 50 && made < count; entry += 1) {
      const lines = eventLines(of, Math.min(LINES_PER_ENTRY, count - made));
      pipeline.xadd(stream, "*", "e", lines.join("\n"));
      made += lines.length;
    }
    await pipeline.exec();
  }
}
