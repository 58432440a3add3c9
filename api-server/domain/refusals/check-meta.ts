import { invalidField } from "./refusals.ts";

/**
 * Maximum size of `meta`. It is far below the maximum size of a request body (api-v2.md section 6.1), because processes cache the keys and
 * identities in use. Each JSON value takes up to 160 bytes of memory, however short its text is.
 */
const META_BYTES_MAX = 1_048_576;
const META_VALUES_MAX = 10_000;

/** Throws PublicError 400 if the meta of a key or identity is too large. */
export function checkMeta(meta: Readonly<Record<string, unknown>> | null | undefined, location = "body.meta"): void {
  if (meta === undefined || meta === null) return;
  if (countValues(meta) > META_VALUES_MAX) {
    throw invalidField(location, `expected at most ${META_VALUES_MAX} objects, arrays, members and entries in total`);
  }
  const bytes = Buffer.byteLength(JSON.stringify(meta));
  if (bytes <= META_BYTES_MAX) return;
  throw invalidField(location, `expected at most ${META_BYTES_MAX} bytes when serialized, got ${bytes}`);
}

/** Recursively counts the values in a JSON value. The maximum depth of a request body limits the recursion. */
function countValues(value: unknown): number {
  let count = 1;
  if (Array.isArray(value)) for (const entry of value) count += countValues(entry);
  else if (typeof value === "object" && value !== null) {
    for (const name in value) count += countValues((value as Record<string, unknown>)[name]);
  }
  return count;
}
