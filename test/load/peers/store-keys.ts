import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import { NEVER_REACHED, STRICT } from "../gate-load.ts";

/** Writes keys as gate.lua reads them, each with a limit that no benchmark reaches. */
export async function storeKeys(
  redisUrl: string,
  keys: readonly { readonly keyId: string; readonly key: string }[],
): Promise<void> {
  const redis = new Redis(redisUrl);
  try {
    for (const { keyId, key } of keys) {
      const hash = createHash("sha256").update(key).digest("base64");
      const limit = { limit: NEVER_REACHED, duration: STRICT.durationMs };
      await redis.hset(`key:${hash}`, { id: keyId, enabled: "1", ...limit });
    }
  } finally {
    redis.disconnect();
  }
}
