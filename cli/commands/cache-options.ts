import { type CacheSize, cacheBytesMax } from "../../sidecar/cache-limits.ts";
import { integer } from "../accepts.ts";
import { UsageError } from "../command.ts";
import { parseInteger } from "../values.ts";

/* Options that limit the size of a gate's key cache. */

const KEYS = integer({ min: 1, max: 10_000_000, unit: "keys" });
const BYTES = {
  ...integer({ min: 1024 * 1024, max: Number.MAX_SAFE_INTEGER, unit: "bytes" }),
  says: "1048576 to half of the spare heap",
};

export const cacheOptions = {
  "max-cache-keys": {
    type: "string",
    placeholder: "COUNT",
    help: "maximum cached keys (default 20000)",
    env: "POSTERN_MAX_CACHE_KEYS",
    accepts: KEYS,
  },
  "max-cache-bytes": {
    type: "string",
    placeholder: "BYTES",
    help: "maximum memory for cached keys: up to half of the spare heap (default: a quarter)",
    env: "POSTERN_MAX_CACHE_BYTES",
    accepts: BYTES,
  },
} as const;

/** Parses the cache options. Throws `UsageError` for invalid values and for more bytes than the heap can hold. */
export function parseCache(
  options: Readonly<Record<keyof typeof cacheOptions, string | undefined>>,
  bytesMax = cacheBytesMax(),
): CacheSize {
  const { "max-cache-keys": keys, "max-cache-bytes": bytes } = options;
  return {
    keys: keys === undefined ? undefined : parseInteger("max-cache-keys", keys, KEYS),
    bytes: bytes === undefined ? undefined : parseBytes(bytes, bytesMax),
  };
}

function parseBytes(text: string, bytesMax: number): number {
  const bytes = parseInteger("max-cache-bytes", text, BYTES);
  if (bytes <= bytesMax) return bytes;
  throw new UsageError(
    `--max-cache-bytes ${text} is more than this heap allows (${bytesMax}); increase the memory of the gate and NODE_OPTIONS=--max-old-space-size`,
  );
}
