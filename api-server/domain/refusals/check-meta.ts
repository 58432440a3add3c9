import { invalidField } from "./invalid-field.ts";

/**
 * Each of a workspace's keys and identities is cached by every pod that meets it, so that what may be attached to one is
 * bounded well below the size of a body (api-v2.md section 6.1).
 */
const META_BYTES_MAX = 1_048_576;

/** Throws PublicError 400 when the meta of a key or identity is too large to be carried along. */
export function checkMeta(meta: Readonly<Record<string, unknown>> | null | undefined, location = "body.meta"): void {
  if (meta === undefined || meta === null) return;
  const bytes = Buffer.byteLength(JSON.stringify(meta));
  if (bytes <= META_BYTES_MAX) return;
  throw invalidField(location, `expected at most ${META_BYTES_MAX} bytes when serialised, got ${bytes}`);
}
