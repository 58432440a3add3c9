import { invalidField } from "./invalid-field.ts";

/**
 * Pods cache the keys and identities that they use, so the size of meta is limited well below that of a body (api-v2.md
 * section 6.1).
 */
const META_BYTES_MAX = 1_048_576;

/** Throws PublicError 400 when the meta of a key or identity is too large. */
export function checkMeta(meta: Readonly<Record<string, unknown>> | null | undefined, location = "body.meta"): void {
  if (meta === undefined || meta === null) return;
  const bytes = Buffer.byteLength(JSON.stringify(meta));
  if (bytes <= META_BYTES_MAX) return;
  throw invalidField(location, `expected at most ${META_BYTES_MAX} bytes when serialised, got ${bytes}`);
}
